/* SPDX-License-Identifier: MIT
 *
 * Copyright (C) 2017-2025 WireGuard LLC. All Rights Reserved.
 */

package device

import (
	"encoding/base64"
	"encoding/binary"
	"time"
)

// handshakeElement is a message of a handshake that waits. It has no pointer to a buffer, so that none
// is allocated for it.
type handshakeElement struct {
	msgType  uint32
	size     int
	packet   [MessageHandshakeSize]byte
	endpoint Endpoint
}

func (elem *handshakeElement) message() []byte { return elem.packet[:elem.size] }

func (peer *Peer) SendHandshakeInitiation(isRetry bool) error {
	if !isRetry {
		peer.timers.handshakeAttempts.Store(0)
	}

	peer.handshake.mutex.RLock()
	if time.Since(peer.handshake.lastSentHandshake) < RekeyTimeout {
		peer.handshake.mutex.RUnlock()
		return nil
	}
	peer.handshake.mutex.RUnlock()

	peer.handshake.mutex.Lock()
	if time.Since(peer.handshake.lastSentHandshake) < RekeyTimeout {
		peer.handshake.mutex.Unlock()
		return nil
	}
	peer.handshake.lastSentHandshake = time.Now()
	peer.handshake.mutex.Unlock()

	peer.device.log.Verbosef("%v - Sending handshake initiation", peer)

	msg, err := peer.device.CreateMessageInitiation(peer)
	if err != nil {
		peer.device.log.Errorf("%v - Failed to create initiation message: %v", peer, err)
		return err
	}

	packet := make([]byte, MessageInitiationSize)
	_ = msg.marshal(packet)
	peer.cookieGenerator.AddMacs(packet)

	peer.timersAnyAuthenticatedPacketTraversal()
	peer.timersAnyAuthenticatedPacketSent()
	peer.timersHandshakeInitiated() // before the answer may come

	err = peer.send(packet, false)
	if err != nil {
		peer.device.log.Errorf("%v - Failed to send handshake initiation: %v", peer, err)
	}

	return err
}

func (peer *Peer) SendHandshakeResponse() error {
	peer.handshake.mutex.Lock()
	peer.handshake.lastSentHandshake = time.Now()
	peer.handshake.mutex.Unlock()

	peer.device.log.Verbosef("%v - Sending handshake response", peer)

	response, err := peer.device.CreateMessageResponse(peer)
	if err != nil {
		peer.device.log.Errorf("%v - Failed to create response message: %v", peer, err)
		return err
	}

	packet := make([]byte, MessageResponseSize)
	_ = response.marshal(packet)
	peer.cookieGenerator.AddMacs(packet)

	err = peer.BeginSymmetricSession()
	if err != nil {
		peer.device.log.Errorf("%v - Failed to derive keypair: %v", peer, err)
		return err
	}

	peer.timersSessionDerived()
	peer.timersAnyAuthenticatedPacketTraversal()
	peer.timersAnyAuthenticatedPacketSent()

	err = peer.send(packet, false)
	if err != nil {
		peer.device.log.Errorf("%v - Failed to send handshake response: %v", peer, err)
	}
	return err
}

func (device *Device) SendHandshakeCookie(initiatingElem *handshakeElement, static *identity) error {
	device.log.Verbosef("Sending cookie response for denied handshake message for %v", &initiatingElem.endpoint)

	sender := binary.LittleEndian.Uint32(initiatingElem.message()[4:8])
	reply, err := static.checker.CreateReply(initiatingElem.message(), sender, initiatingElem.endpoint.bytes())
	if err != nil {
		device.log.Errorf("Failed to create cookie reply: %v", err)
		return err
	}

	packet := make([]byte, MessageCookieReplySize)
	_ = reply.marshal(packet)
	return device.net.network.Send(packet, &initiatingElem.endpoint)
}

// routineHandshake handles the messages of handshakes, one at a time: the check for a replay and what is
// remembered for the next one are not under one lock.
func (device *Device) routineHandshake() {
	defer device.queue.done.Done()
	for elem := range device.queue.handshake {
		device.handle(&elem)
	}
}

// handle handles a message of a handshake.
func (device *Device) handle(elem *handshakeElement) {

	var static *identity // that the message is for

	// handle cookie fields and ratelimiting

	switch elem.msgType {

	case MessageCookieReplyType:

		// unmarshal packet

		var reply MessageCookieReply
		err := reply.unmarshal(elem.message())
		if err != nil {
			device.log.Verbosef("Failed to decode cookie reply")
			return
		}

		// lookup peer from index

		entry := device.indexTable.Lookup(reply.Receiver)

		if entry.peer == nil || entry.peer.place != elem.endpoint.Place {
			return
		}

		// consume reply

		if peer := entry.peer; peer.isRunning.Load() {
			device.log.Verbosef("Receiving cookie response from %s", &elem.endpoint)
			if !peer.cookieGenerator.ConsumeReply(&reply) {
				device.log.Verbosef("Could not decrypt invalid cookie response")
			}
		}

		return

	case MessageInitiationType, MessageResponseType:

		// check mac fields and maybe ratelimit

		if static = device.identityFor(elem, time.Now()); static == nil {
			device.log.Verbosef("Received packet with invalid mac1")
			if elem.msgType == MessageInitiationType && elem.endpoint.Place == 0 {
				device.strangers.note(Stranger{From: elem.endpoint.Remote, Time: time.Now()})
			}
			return
		}

		// endpoints destination address is the source of the datagram

		if device.IsUnderLoad() {

			// verify MAC2 field

			if !static.checker.CheckMAC2(elem.message(), elem.endpoint.bytes()) {
				device.SendHandshakeCookie(elem, static)
				return
			}

			// check ratelimiter

			if !device.rate.limiter.Allow(elem.endpoint.Remote.Addr()) {
				return
			}
		}

	default:
		device.log.Errorf("Invalid packet ended up in the handshake queue")
		return
	}

	// handle handshake initiation/response content

	switch elem.msgType {
	case MessageInitiationType:

		// unmarshal

		var msg MessageInitiation
		err := msg.unmarshal(elem.message())
		if err != nil {
			device.log.Errorf("Failed to decode initiation message")
			return
		}

		// consume initiation

		peer, stranger := device.consumeInitiation(&msg, static)
		if peer == nil && !stranger.IsZero() && static == &device.staticIdentity {
			device.strangers.note(Stranger{From: elem.endpoint.Remote, Key: stranger, Time: time.Now()})
			device.log.Verbosef("Received invalid initiation message from %s: no peer here has its public key %s", &elem.endpoint, base64.StdEncoding.EncodeToString(stranger[:]))
			return
		}
		if peer == nil {
			device.log.Verbosef("Received invalid initiation message from %s", &elem.endpoint)
			return
		}

		// update timers

		peer.timersAnyAuthenticatedPacketTraversal()
		peer.timersAnyAuthenticatedPacketReceived()

		// update endpoint
		peer.SetEndpointFromPacket(&elem.endpoint)

		device.log.Verbosef("%v - Received handshake initiation", peer)
		if peer.first == nil {
			peer.rxBytes.Add(uint64(len(elem.message())))
		}

		peer.SendHandshakeResponse()

	case MessageResponseType:

		// unmarshal

		var msg MessageResponse
		err := msg.unmarshal(elem.message())
		if err != nil {
			device.log.Errorf("Failed to decode response message")
			return
		}

		// consume response

		peer := device.ConsumeMessageResponse(&msg, elem.endpoint.Place)
		if peer == nil {
			device.log.Verbosef("Received invalid response message from %s", &elem.endpoint)
			return
		}

		// update endpoint
		if !peer.answered(elem.message()) {
			peer.SetEndpointFromPacket(&elem.endpoint)
		}

		device.log.Verbosef("%v - Received handshake response", peer)
		if peer.first == nil {
			peer.rxBytes.Add(uint64(len(elem.message())))
		}

		// update timers

		peer.timersAnyAuthenticatedPacketTraversal()
		peer.timersAnyAuthenticatedPacketReceived()

		// derive keypair

		err = peer.BeginSymmetricSession()

		if err != nil {
			device.log.Errorf("%v - Failed to derive keypair: %v", peer, err)
			return
		}

		peer.timersSessionDerived()
		peer.timersHandshakeComplete()
		peer.SendKeepalive()
	}
}

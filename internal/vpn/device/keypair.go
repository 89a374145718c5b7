/* SPDX-License-Identifier: MIT
 *
 * Copyright (C) 2017-2025 WireGuard LLC. All Rights Reserved.
 */

package device

import (
	"crypto/cipher"
	"sync"
	"sync/atomic"
	"time"

	"golang.zx2c4.com/wireguard/replay"
)

/* Due to limitations in Go and /x/crypto there is currently
 * no way to ensure that key material is securely ereased in memory.
 *
 * Since this may harm the forward secrecy property,
 * we plan to resolve this issue; whenever Go allows us to do so.
 */

// What workers change for each message is not in the cache lines that others read for each.
type Keypair struct {
	sendNonce atomic.Uint64
	_         [cacheLines]byte

	send        cipher.AEAD
	receive     cipher.AEAD
	isInitiator bool
	created     time.Time
	localIndex  uint32
	remoteIndex uint32
	_           [cacheLines]byte

	replayMutex  sync.Mutex // protects replayFilter
	replayFilter replay.Filter
}

// cacheLines are two: processors read them in pairs.
const cacheLines = 128

type Keypairs struct {
	sync.RWMutex
	current  *Keypair
	previous *Keypair
	next     atomic.Pointer[Keypair]
}

func (kp *Keypairs) Current() *Keypair {
	kp.RLock()
	defer kp.RUnlock()
	return kp.current
}

func (device *Device) DeleteKeypair(key *Keypair) {
	if key != nil {
		device.indexTable.Delete(key.localIndex)
	}
}

package remote

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// exchange is a run as one side carries it out, when everything is connected.
type exchange struct {
	run      Run
	out, in  []*net.TCPConn // of TCP: those it sends on, and those it receives on
	udp      *net.UDPConn
	tag      [tagLen]byte
	sends    bool
	receives bool
	limit    *bucket  // of what it receives; nil: none
	budget   *account // of what it moves; nil: none

	meter    *meter
	counting *udpReceiver
	reading  chan error  // ends when the receiving goroutines have
	counted  atomic.Bool // the window is over: whoever receives may end
}

// carryOut sends and receives until both are over. What was measured is right
// also if there is an error, for as long as it went.
func (e *exchange) carryOut(ctx context.Context) (s *sent, r *received, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	var sending, receiving error
	if e.receives {
		e.startReading(cancel)
		all.Go(func() {
			var got received
			got, receiving = e.meter.window(ctx, e.run.Omit, e.run.Count)
			r = &got
			e.counted.Store(true)
			closeConns(e.in)
			if receiving != nil {
				cancel(receiving) // no more is sent, either
			}
		})
	}
	if e.sends {
		all.Go(func() {
			var got sent
			got, sending = e.send(ctx)
			s = &got
			if sending != nil {
				cancel(sending)
			}
		})
	}
	all.Wait()
	return s, r, firstError(receiving, sending)
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (e *exchange) send(ctx context.Context) (sent, error) {
	if e.run.Protocol == UDP {
		return sendUDP(ctx, e.udp, e.tag, &e.run, e.budget)
	}
	return sendTCP(ctx, e.out, e.run.Rate, e.run.Omit+e.run.Count, e.budget)
}

// startReading counts what comes from now on. Where it ends by itself the run
// is over.
func (e *exchange) startReading(over context.CancelCauseFunc) {
	e.reading = make(chan error, 1)
	if e.run.Protocol == UDP {
		e.counting = &udpReceiver{tag: e.tag, payload: e.run.Payload, overhead: e.run.Frame - e.run.Payload}
		e.meter = &e.counting.meter
	} else {
		e.meter = new(meter)
	}
	go func() {
		var err error
		if e.counting != nil {
			err = e.counting.receive(e.udp, e.limit, e.budget)
		} else {
			err = receiveTCP(e.in, e.meter, e.limit, e.budget)
		}
		e.reading <- err
		if err == nil && !e.counted.Load() {
			err = errCutOff
		}
		if err != nil {
			over(err)
		}
	}()
}

// settle adds to what was received what only a UDP receiver knows, and only
// when the other side has sent its last.
func (e *exchange) settle(ctx context.Context, r *received) error {
	if e.counting == nil || r == nil {
		return nil
	}
	if err := sleep(ctx, udpDrain); err != nil {
		return err
	}
	r.Packets, r.Reordered = e.counting.packets.Load(), e.counting.reordered.Load()
	r.Jitter, r.Overflow = time.Duration(e.counting.jitter.Load()), overflowed(e.udp)
	return nil
}

// close ends everything that still goes on.
func (e *exchange) close() {
	closeConns(e.in)
	closeConns(e.out)
	if e.udp != nil {
		e.udp.Close()
	}
	if e.reading != nil {
		<-e.reading
	}
}

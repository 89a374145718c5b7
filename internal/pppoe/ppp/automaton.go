package ppp

import "fmt"

// State is a state of the option negotiation automaton (RFC 1661 4.2), with its number there.
type State uint8

// The states of RFC 1661 4.2.
const (
	Initial State = iota
	Starting
	Closed
	Stopped
	Closing
	Stopping
	ReqSent
	AckRcvd
	AckSent
	Opened
	states = iota
)

var stateNames = [states]string{
	"Initial", "Starting", "Closed", "Stopped", "Closing", "Stopping", "Req-Sent", "Ack-Rcvd", "Ack-Sent", "Opened",
}

// String returns the state's name in RFC 1661.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// event is what the automaton reacts to (RFC 1661 4.3).
type event uint8

const (
	up             event = iota // the lower layer is ready
	down                        // the lower layer is gone
	open                        // the layer may be opened
	shut                        // Close: the layer may not be opened
	timeoutAgain                // TO+: the restart counter is above 0
	timeoutLast                 // TO-: it is not
	requestGood                 // RCR+: a Configure-Request to acknowledge
	requestBad                  // RCR-: one to refuse
	requestAcked                // RCA
	requestRefused              // RCN: Configure-Nak or Configure-Reject
	terminateAsked              // RTR
	terminateAcked              // RTA
	codeUnknown                 // RUC
	rejectHarmless              // RXJ+: a Code- or Protocol-Reject that can be borne
	rejectFatal                 // RXJ-: one that cannot
	echoOrDiscard               // RXR: Echo-Request, Echo-Reply, Discard-Request
	events         = iota
)

var eventNames = [events]string{
	"Up", "Down", "Open", "Close", "TO+", "TO-", "RCR+", "RCR-", "RCA", "RCN", "RTR", "RTA", "RUC", "RXJ+", "RXJ-", "RXR",
}

// action is what the automaton does (RFC 1661 4.4).
type action uint8

const (
	thisLayerUp          action = iota + 1 // tlu
	thisLayerDown                          // tld
	thisLayerStarted                       // tls
	thisLayerFinished                      // tlf
	initRestartCount                       // irc
	zeroRestartCount                       // zrc
	sendRequest                            // scr
	sendAck                                // sca
	sendNak                                // scn, which is a Configure-Nak or a Configure-Reject
	sendTerminateRequest                   // str
	sendTerminateAck                       // sta
	sendCodeReject                         // scj
	sendEchoReply                          // ser
	actions              = iota + 1
)

// cell is one cell of the table: the actions in their order and the state after them.
type cell struct {
	do   []action
	next State
	ok   bool // the event can happen in this state
}

func to(next State, do ...action) cell { return cell{do, next, true} }

// transitions is the table of RFC 1661 4.1, by event and state. Of its options none is
// taken: an Open in state Stopped, Stopping, Closing or Opened does not restart (r), and the
// end is never passive (p).
var transitions = [events][states]cell{
	up: {Initial: to(Closed), Starting: to(ReqSent, initRestartCount, sendRequest)},
	down: {
		Closed: to(Initial), Stopped: to(Starting, thisLayerStarted), Closing: to(Initial), Stopping: to(Starting),
		ReqSent: to(Starting), AckRcvd: to(Starting), AckSent: to(Starting), Opened: to(Starting, thisLayerDown),
	},
	open: {
		Initial: to(Starting, thisLayerStarted), Starting: to(Starting), Closed: to(ReqSent, initRestartCount, sendRequest),
		Stopped: to(Stopped), Closing: to(Stopping), Stopping: to(Stopping),
		ReqSent: to(ReqSent), AckRcvd: to(AckRcvd), AckSent: to(AckSent), Opened: to(Opened),
	},
	shut: {
		Initial: to(Initial), Starting: to(Initial, thisLayerFinished), Closed: to(Closed), Stopped: to(Closed),
		Closing: to(Closing), Stopping: to(Closing), ReqSent: to(Closing, initRestartCount, sendTerminateRequest),
		AckRcvd: to(Closing, initRestartCount, sendTerminateRequest), AckSent: to(Closing, initRestartCount, sendTerminateRequest),
		Opened: to(Closing, thisLayerDown, initRestartCount, sendTerminateRequest),
	},
	timeoutAgain: {
		Closing: to(Closing, sendTerminateRequest), Stopping: to(Stopping, sendTerminateRequest),
		ReqSent: to(ReqSent, sendRequest), AckRcvd: to(ReqSent, sendRequest), AckSent: to(AckSent, sendRequest),
	},
	timeoutLast: {
		Closing: to(Closed, thisLayerFinished), Stopping: to(Stopped, thisLayerFinished),
		ReqSent: to(Stopped, thisLayerFinished), AckRcvd: to(Stopped, thisLayerFinished), AckSent: to(Stopped, thisLayerFinished),
	},
	requestGood: {
		Closed: to(Closed, sendTerminateAck), Stopped: to(AckSent, initRestartCount, sendRequest, sendAck),
		Closing: to(Closing), Stopping: to(Stopping), ReqSent: to(AckSent, sendAck), AckRcvd: to(Opened, sendAck, thisLayerUp),
		AckSent: to(AckSent, sendAck), Opened: to(AckSent, thisLayerDown, sendRequest, sendAck),
	},
	requestBad: {
		Closed: to(Closed, sendTerminateAck), Stopped: to(ReqSent, initRestartCount, sendRequest, sendNak),
		Closing: to(Closing), Stopping: to(Stopping), ReqSent: to(ReqSent, sendNak), AckRcvd: to(AckRcvd, sendNak),
		AckSent: to(ReqSent, sendNak), Opened: to(ReqSent, thisLayerDown, sendRequest, sendNak),
	},
	requestAcked: {
		Closed: to(Closed, sendTerminateAck), Stopped: to(Stopped, sendTerminateAck), Closing: to(Closing), Stopping: to(Stopping),
		ReqSent: to(AckRcvd, initRestartCount), AckRcvd: to(ReqSent, sendRequest),
		AckSent: to(Opened, initRestartCount, thisLayerUp), Opened: to(ReqSent, thisLayerDown, sendRequest),
	},
	requestRefused: {
		Closed: to(Closed, sendTerminateAck), Stopped: to(Stopped, sendTerminateAck), Closing: to(Closing), Stopping: to(Stopping),
		ReqSent: to(ReqSent, initRestartCount, sendRequest), AckRcvd: to(ReqSent, sendRequest),
		AckSent: to(AckSent, initRestartCount, sendRequest), Opened: to(ReqSent, thisLayerDown, sendRequest),
	},
	terminateAsked: {
		Closed: to(Closed, sendTerminateAck), Stopped: to(Stopped, sendTerminateAck), Closing: to(Closing, sendTerminateAck),
		Stopping: to(Stopping, sendTerminateAck), ReqSent: to(ReqSent, sendTerminateAck), AckRcvd: to(ReqSent, sendTerminateAck),
		AckSent: to(ReqSent, sendTerminateAck), Opened: to(Stopping, thisLayerDown, zeroRestartCount, sendTerminateAck),
	},
	terminateAcked: {
		Closed: to(Closed), Stopped: to(Stopped), Closing: to(Closed, thisLayerFinished), Stopping: to(Stopped, thisLayerFinished),
		ReqSent: to(ReqSent), AckRcvd: to(ReqSent), AckSent: to(AckSent), Opened: to(ReqSent, thisLayerDown, sendRequest),
	},
	codeUnknown: {
		Closed: to(Closed, sendCodeReject), Stopped: to(Stopped, sendCodeReject), Closing: to(Closing, sendCodeReject),
		Stopping: to(Stopping, sendCodeReject), ReqSent: to(ReqSent, sendCodeReject), AckRcvd: to(AckRcvd, sendCodeReject),
		AckSent: to(AckSent, sendCodeReject), Opened: to(Opened, sendCodeReject),
	},
	rejectHarmless: {
		Closed: to(Closed), Stopped: to(Stopped), Closing: to(Closing), Stopping: to(Stopping),
		ReqSent: to(ReqSent), AckRcvd: to(ReqSent), AckSent: to(AckSent), Opened: to(Opened),
	},
	rejectFatal: {
		Closed: to(Closed, thisLayerFinished), Stopped: to(Stopped, thisLayerFinished), Closing: to(Closed, thisLayerFinished),
		Stopping: to(Stopped, thisLayerFinished), ReqSent: to(Stopped, thisLayerFinished), AckRcvd: to(Stopped, thisLayerFinished),
		AckSent: to(Stopped, thisLayerFinished), Opened: to(Stopping, thisLayerDown, initRestartCount, sendTerminateRequest),
	},
	echoOrDiscard: {
		Closed: to(Closed), Stopped: to(Stopped), Closing: to(Closing), Stopping: to(Stopping),
		ReqSent: to(ReqSent), AckRcvd: to(AckRcvd), AckSent: to(AckSent), Opened: to(Opened, sendEchoReply),
	},
}

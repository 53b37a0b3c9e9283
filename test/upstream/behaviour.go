package upstream

import (
	"net/http"
	"time"
)

// Kind says how an upstream handles a probe.
type Kind uint8

// The kinds of behaviour.
const (
	KindAnswer Kind = iota // answer, after Delay
	KindHang               // accept the connection and the request, never answer
	KindReset              // reset the connection instead of answering
	KindRaw                // write Raw instead of an answer, then close
	KindRefuse             // stop listening, drop connections and keep the address
)

// Behaviour says how an upstream answers probes. Make one with the functions below and
// refine its fields.
type Behaviour struct {
	Kind   Kind
	Status int           // of an HTTP answer
	Header http.Header   // more headers of an HTTP answer
	Body   string        // of an HTTP answer
	Delay  time.Duration // before an answer
	Raw    []byte        // KindRaw: the bytes; TCP: the answer, or nil to echo
	Close  bool          // close after each answer without announcing it
}

// Healthy answers 200, and echoes on TCP.
func Healthy() Behaviour { return Status(http.StatusOK) }

// Status answers with an HTTP status code.
func Status(code int) Behaviour {
	return Behaviour{Kind: KindAnswer, Status: code, Body: http.StatusText(code) + "\n"}
}

// Slow answers 200 after a delay.
func Slow(delay time.Duration) Behaviour {
	b := Healthy()
	b.Delay = delay
	return b
}

// Hang accepts connections and requests and never answers.
func Hang() Behaviour { return Behaviour{Kind: KindHang} }

// Reset resets the connection after a request (on TCP at once).
func Reset() Behaviour { return Behaviour{Kind: KindReset} }

// Garbage answers with bytes that are not HTTP.
func Garbage() Behaviour { return Raw([]byte("\x00\x01garbage\r\n\xff\xfe\r\n\r\n")) }

// Raw answers with exactly these bytes, then closes.
func Raw(bytes []byte) Behaviour { return Behaviour{Kind: KindRaw, Raw: bytes} }

// Refuse makes the kernel refuse connections. No other process can take the address.
func Refuse() Behaviour { return Behaviour{Kind: KindRefuse} }

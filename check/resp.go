package check

import (
	"errors"
	"fmt"
	"math"
)

var errNotRedis = errors.New("answer is not Redis")

// reply is what a check looks at of a Redis server's reply.
type reply struct {
	kind   byte   // the first byte on the wire, '_' for null, 'i' for what has none (an inline command)
	text   string // of '+', '-' and '!', the beginning of it
	number int64  // of ':'
}

// late tells a reply that nobody asked for, or one that only goes before
// another: both are passed over.
func (r *reply) late() bool { return r.kind == '>' || r.kind == '|' }

// What is taken of a reply at most.
const (
	maxReplyText   = 256       // kept
	maxReplyValues = 1 << 20   // in arrays
	maxReplyBulk   = 512 << 20 // bytes
)

// replyReader understands replies (RESP 2 and 3) byte by byte, in parts as
// they come. It keeps nothing but the beginning of a reply, however long it is.
type replyReader struct {
	expects expectation
	values  int  // still to come in full, those inside of others counted
	outer   bool // the value under way is the reply itself
	kind    byte // of the value under way
	number  uint64
	digits  bool
	minus   bool
	text    []byte
	reply   reply
}

type expectation uint8

const (
	aKind expectation = iota
	aSign
	aDigit
	theNumbersEnd
	aText
	aBody
	aTruth
	aReturn
	theEnd
)

// take takes bytes up to the end of a reply. It gives how many it took, and
// whether the reply is complete.
func (r *replyReader) take(b []byte) (n int, complete bool, err error) {
	for n < len(b) {
		if r.expects == aBody {
			n += r.body(b[n:])
			continue
		}
		done, err := r.next(b[n])
		n++
		if err != nil {
			return n, false, err
		}
		if done && r.values == 0 {
			return n, true, nil
		}
	}
	return n, false, nil
}

// body takes as much of a text of known length as there is.
func (r *replyReader) body(b []byte) int {
	n := int(min(r.number, uint64(len(b))))
	r.keep(b[:n]...)
	if r.number -= uint64(n); r.number == 0 {
		r.expects = aReturn
	}
	return n
}

func (r *replyReader) keep(b ...byte) {
	if r.outer {
		r.text = append(r.text, b[:min(len(b), maxReplyText-len(r.text))]...)
	}
}

// next takes one byte and tells whether a value is complete with it.
func (r *replyReader) next(c byte) (done bool, err error) {
	switch r.expects {
	case aKind:
		return false, r.begin(c)
	case aSign:
		if r.expects = aDigit; c == '-' {
			r.minus = true
			return false, nil
		}
		return r.next(c)
	case aDigit:
		return false, r.digit(c)
	case theNumbersEnd:
		if c != '\n' || !r.digits {
			return false, fmt.Errorf("%w: a number is none", errNotRedis)
		}
		return r.numberRead()
	case aText:
		if c == '\r' {
			r.expects = theEnd
		} else {
			r.keep(c)
		}
		return false, nil
	case aTruth:
		if r.expects = aReturn; c != 't' && c != 'f' {
			return false, fmt.Errorf("%w: %q for true or false", errNotRedis, c)
		}
		return false, nil
	case aReturn:
		r.expects = theEnd
		return false, demand(c, '\r')
	default:
		return r.valueRead(), demand(c, '\n')
	}
}

func demand(c, want byte) error {
	if c != want {
		return fmt.Errorf("%w: %q where a line ends", errNotRedis, c)
	}
	return nil
}

// begin takes the first byte of a value.
func (r *replyReader) begin(c byte) error {
	r.kind, r.number, r.digits, r.minus, r.text = c, 0, false, false, r.text[:0]
	r.outer = r.values == 0
	switch c {
	case '+', '-', ',', '(':
		r.expects = aText
	case ':', '$', '!', '=', '*', '~', '>', '%', '|':
		r.expects = aSign
	case '_':
		r.expects = aReturn
	case '#':
		r.expects = aTruth
	default:
		if !r.outer || !inline(c) {
			return fmt.Errorf("%w: a value that begins with %q", errNotRedis, c)
		}
		r.kind, r.expects = 'i', aText
	}
	if r.outer {
		r.values = 1
	}
	return nil
}

// inline tells what begins a line that is no value, but a command as people
// type it; Envoy takes them from servers, too.
func inline(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == ' ' || '\t' <= c && c <= '\r' || c == '"' || c == '\''
}

func (r *replyReader) digit(c byte) error {
	switch {
	case c == '\r':
		r.expects = theNumbersEnd
	case c < '0' || c > '9':
		return fmt.Errorf("%w: %q in a number", errNotRedis, c)
	case r.number > math.MaxInt64/10:
		return fmt.Errorf("%w: a number is too large", errNotRedis)
	default:
		r.number, r.digits = r.number*10+uint64(c-'0'), true
	}
	return nil
}

// numberRead does what the number of a value asks for.
func (r *replyReader) numberRead() (done bool, err error) {
	null := r.minus && r.number == 1 && (r.kind == '*' || r.kind == '$')
	switch {
	case r.kind == ':':
		if r.number > math.MaxInt64 {
			return false, fmt.Errorf("%w: a number is too large", errNotRedis)
		}
		return r.valueRead(), nil
	case null:
		r.kind = '_'
		return r.valueRead(), nil
	case r.minus:
		return false, fmt.Errorf("%w: a length below zero", errNotRedis)
	case r.kind == '$' || r.kind == '!' || r.kind == '=':
		if r.expects = aBody; r.number == 0 {
			r.expects = aReturn
		}
		if r.number > maxReplyBulk {
			return false, fmt.Errorf("%w: a text of %d bytes", errNotRedis, r.number)
		}
		return false, nil
	}
	if r.number > maxReplyValues || r.values > maxReplyValues {
		return false, fmt.Errorf("%w: %d values", errNotRedis, r.number)
	}
	r.values += int(r.number)
	if r.kind == '%' || r.kind == '|' { // pairs
		r.values += int(r.number)
	}
	if r.kind == '|' && !r.outer { // what it belongs to comes after it
		r.expects = aKind
		return false, nil
	}
	return r.valueRead(), nil
}

// valueRead notes that a value is complete, but for those that an array holds.
func (r *replyReader) valueRead() bool {
	if r.outer {
		r.reply = reply{kind: r.kind, text: string(r.text), number: int64(r.number)}
		if r.minus {
			r.reply.number = -r.reply.number
		}
	}
	r.values--
	r.expects = aKind
	return true
}

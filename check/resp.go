package check

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

var errNotRedis = errors.New("answer is not Redis")

// reply is the first line of a Redis server's reply. PONG, an integer and an error have
// only one line, and no other reply passes a check.
type reply struct {
	kind   byte   // the first byte, 'i' for a line without one (an inline command)
	text   string // the beginning of the rest
	number int64  // of ':'
}

// hasMore reports whether more lines of the reply follow.
func (r *reply) hasMore() bool { return bytes.IndexByte([]byte("$*!=~>%|"), r.kind) >= 0 }

// maxReplyText bounds the kept bytes of a line.
const maxReplyText = 256

// replyReader reads replies line by line, in any parts. It keeps the beginning of a
// line, however long that is.
type replyReader struct {
	kind   byte // 0 before a line begins
	text   []byte
	ending bool // the line's \r has arrived
	reply  reply
}

// consume reads bytes up to the end of a line. It returns their number, and whether the line is
// complete.
func (r *replyReader) consume(b []byte) (n int, complete bool, err error) {
	for i, c := range b {
		switch {
		case r.ending && c == '\n':
			return i + 1, true, r.end()
		case r.ending:
			return i + 1, false, fmt.Errorf("%w: %q where a line ends", errNotRedis, c)
		case c == '\r' && r.kind != 0:
			r.ending = true
		case r.kind == 0:
			if err := r.begin(c); err != nil {
				return i + 1, false, err
			}
		case len(r.text) < maxReplyText:
			r.text = append(r.text, c)
		}
	}
	return len(b), false, nil
}

// begin reads the first byte of a line. Like Envoy, it accepts inline commands from servers,
// too.
func (r *replyReader) begin(c byte) error {
	switch {
	case bytes.IndexByte([]byte("+-:$*_#,(!=~>%|"), c) >= 0:
		r.kind = c
	case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == ' ' || '\t' <= c && c <= '\r' || c == '"' || c == '\'':
		r.kind = 'i'
	default:
		return fmt.Errorf("%w: a reply that begins with %q", errNotRedis, c)
	}
	return nil
}

// end makes the reply of a complete line.
func (r *replyReader) end() error {
	r.reply = reply{kind: r.kind, text: string(r.text)}
	r.kind, r.text, r.ending = 0, r.text[:0], false
	if r.reply.kind != ':' {
		return nil
	}
	number, err := strconv.ParseInt(r.reply.text, 10, 64)
	if err != nil || r.reply.text[0] == '+' {
		return fmt.Errorf("%w: %q is no integer", errNotRedis, r.reply.text)
	}
	r.reply.number = number
	return nil
}

package envoy

import (
	"math/rand/v2"
	"net"
	"strconv"
)

// The ports from which FreeAddress chooses. They are outside of Linux's ephemeral
// range. So no other process gets one by chance before a server listens on it, or while
// the server restarts.
const (
	firstPort = 12000
	lastPort  = 32000
)

// FreeAddress returns a loopback address on which nobody listened a moment ago.
func FreeAddress() (address string, err error) {
	var l net.Listener
	for range 100 {
		address = net.JoinHostPort("127.0.0.1", strconv.Itoa(firstPort+rand.IntN(lastPort-firstPort)))
		if l, err = net.Listen("tcp", address); err == nil {
			return address, l.Close()
		}
	}
	return "", err
}

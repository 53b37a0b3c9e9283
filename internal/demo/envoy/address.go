package envoy

import (
	"math/rand/v2"
	"net"
	"strconv"
)

// The ports among which FreeAddress chooses. Linux gives none of them to who asks
// for any port, or connects from one: until it is listened on, or while its server
// restarts, nobody else takes it by chance.
const (
	firstPort = 12000
	lastPort  = 32000
)

// FreeAddress gives a loopback address that nobody listened on a moment ago.
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

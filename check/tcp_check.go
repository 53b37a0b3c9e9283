package check

import (
	"fmt"
	"net"
	"net/netip"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// tcpCheck is a TCP health check: what it sends and what it expects. If it expects
// nothing, it only connects and sends nothing.
type tcpCheck struct {
	send    []byte
	receive [][]byte
	proxy   []byte // PROXY protocol version 2
	proxyV1 bool
}

func newTCPCheck(c *corev3.HealthCheck_TcpHealthCheck) (*tcpCheck, error) {
	t := &tcpCheck{}
	var err error
	if send := c.GetSend(); send != nil {
		if t.send, err = payloadBytes(send); err != nil {
			return nil, fmt.Errorf("send: %w", err)
		}
	}
	if t.receive, err = segments(c.GetReceive()); err != nil {
		return nil, err
	}
	total := 0
	for _, segment := range t.receive {
		total += len(segment)
	}
	if total > maxTCPAnswer {
		return nil, fmt.Errorf("receive has %d bytes; %d at most", total, maxTCPAnswer)
	}
	if p := c.GetProxyProtocolConfig(); p != nil {
		t.proxyV1 = p.GetVersion() == corev3.ProxyProtocolConfig_V1
		if !t.proxyV1 {
			// Signature, version 2 with the LOCAL command, no address.
			t.proxy = []byte("\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00")
		}
	}
	return t, nil
}

// request returns the bytes to send on a connection.
func (t *tcpCheck) request(c net.Conn) []byte {
	header := t.proxy
	if t.proxyV1 {
		header = proxyHeader(c)
	}
	return append(slices.Clip(header), t.send...)
}

// proxyHeader returns the PROXY protocol header of version 1.
func proxyHeader(c net.Conn) []byte {
	local, localOK := c.LocalAddr().(*net.TCPAddr)
	remote, remoteOK := c.RemoteAddr().(*net.TCPAddr)
	if !localOK || !remoteOK {
		return []byte("PROXY UNKNOWN\r\n")
	}
	from, to := unmapped(local), unmapped(remote)
	family := "TCP4"
	if to.Addr().Is6() {
		family = "TCP6"
	}
	return fmt.Appendf(nil, "PROXY %s %s %s %d %d\r\n", family, from.Addr(), to.Addr(), from.Port(), to.Port())
}

func unmapped(a *net.TCPAddr) netip.AddrPort {
	b := a.AddrPort()
	return netip.AddrPortFrom(b.Addr().Unmap(), b.Port())
}

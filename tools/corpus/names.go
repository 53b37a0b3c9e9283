package main

import (
	"net"
	"net/netip"
	"sync"

	"github.com/miekg/dns"
)

// names is a DNS server that has one IPv4 and one IPv6 address for each name, and no other
// records.
type names struct {
	server *dns.Server
	at     net.Addr
	served sync.WaitGroup
}

// startNames starts it on loopback.
func startNames() (*names, error) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	n := &names{server: &dns.Server{PacketConn: conn, Handler: dns.HandlerFunc(answerName)}, at: conn.LocalAddr()}
	n.served.Go(func() { _ = n.server.ActivateAndServe() }) // until it is stopped
	return n, nil
}

func (n *names) address() string { return n.at.String() }

func (n *names) stop() {
	_ = n.server.Shutdown()
	n.served.Wait()
}

// These are where all names lead: addresses for documentation, at which nobody answers.
var (
	answered  = netip.MustParseAddr("192.0.2.1")
	answered6 = netip.MustParseAddr("2001:db8::1")
)

func answerName(to dns.ResponseWriter, question *dns.Msg) {
	answer := new(dns.Msg).SetReply(question)
	for _, q := range question.Question {
		header := dns.RR_Header{Name: q.Name, Rrtype: q.Qtype, Class: dns.ClassINET, Ttl: 60}
		switch q.Qtype {
		case dns.TypeA:
			answer.Answer = append(answer.Answer, &dns.A{Hdr: header, A: answered.AsSlice()})
		case dns.TypeAAAA:
			answer.Answer = append(answer.Answer, &dns.AAAA{Hdr: header, AAAA: answered6.AsSlice()})
		}
	}
	_ = to.WriteMsg(answer) // who asks asks again
}

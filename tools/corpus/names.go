package main

import (
	"net"
	"net/netip"
	"sync"

	"github.com/miekg/dns"
)

// names is a DNS server that has one IPv4 address for each name, and no other records.
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

// answered is where all names lead: an address for documentation, at which nobody answers.
var answered = netip.MustParseAddr("192.0.2.1")

func answerName(to dns.ResponseWriter, question *dns.Msg) {
	answer := new(dns.Msg).SetReply(question)
	for _, q := range question.Question {
		if q.Qtype == dns.TypeA {
			answer.Answer = append(answer.Answer, &dns.A{Hdr: dns.RR_Header{Name: q.Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60}, A: answered.AsSlice()})
		}
	}
	_ = to.WriteMsg(answer) // who asks asks again
}

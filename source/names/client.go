package names

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
)

// Bounds of one lookup.
const (
	lookupTimeout = 5 * time.Second
	tryTimeout    = time.Second // of one server
	tries         = 2           // of each server
	maxUDP        = 1232        // bytes that fit a packet on any way
	maxChain      = 16          // aliases (CNAME) in an answer
	systemFor     = 5 * time.Second
)

// client asks DNS servers.
type client struct {
	resolvers []string // host:port; empty: the system's
	system    string   // the file that names the system's
	hosts     hosts

	mu   sync.Mutex
	conf *dns.ClientConfig // of the system, read now and then
	read time.Time
}

func newClient(resolvers []string) *client {
	return &client{resolvers: resolvers, system: "/etc/resolv.conf", hosts: hosts{path: "/etc/hosts"}}
}

// lookup asks for the addresses of a name.
func (c *client) lookup(ctx context.Context, q Question) (v4, v6 half) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	wants4, wants6 := asks(q.Family)
	if found := c.hosts.find(strings.TrimSuffix(q.Host, ".")); len(found) > 0 {
		return ofKind(found, netip.Addr.Is4), ofKind(found, netip.Addr.Is6)
	}
	servers, names := c.settings(q.Host)
	var wg sync.WaitGroup
	if wants4 {
		wg.Go(func() { v4 = ask(ctx, servers, names, dns.TypeA) })
	}
	if wants6 {
		wg.Go(func() { v6 = ask(ctx, servers, names, dns.TypeAAAA) })
	}
	wg.Wait()
	return v4, v6
}

func ofKind(addresses []netip.Addr, matches func(netip.Addr) bool) half {
	found := slices.DeleteFunc(slices.Clone(addresses), func(a netip.Addr) bool { return !matches(a) })
	if len(found) == 0 {
		return half{noneReason: "the hosts file has no such address"}
	}
	return half{addresses: found}
}

// settings returns the servers to ask, and the complete names to ask for in order.
func (c *client) settings(host string) (servers, names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conf == nil || time.Since(c.read) >= systemFor {
		conf, err := dns.ClientConfigFromFile(c.system)
		if err != nil || len(conf.Servers) == 0 {
			conf = &dns.ClientConfig{Servers: []string{"127.0.0.1"}, Port: "53", Ndots: 1}
		}
		c.conf, c.read = conf, time.Now()
	}
	if servers = c.resolvers; len(servers) == 0 {
		for _, server := range c.conf.Servers {
			servers = append(servers, net.JoinHostPort(server, c.conf.Port))
		}
	}
	return servers, c.conf.NameList(host)
}

// ask asks for one kind of records: the first name that has some counts.
func ask(ctx context.Context, servers, names []string, kind uint16) half {
	empty := half{noneReason: "the name is not valid"}
	for i, name := range names {
		answer, err := askOne(ctx, servers, name, kind)
		switch {
		case err != nil:
			return half{failure: err.Error()}
		case len(answer.addresses) > 0:
			return answer
		case i == 0 || answer.noneReason != noSuchName:
			empty = answer
		}
	}
	return empty
}

const noSuchName = "there is no such name (NXDOMAIN)"

// askOne asks for one complete name, one server after the other until one answers.
func askOne(ctx context.Context, servers []string, name string, kind uint16) (half, error) {
	if _, ok := dns.IsDomainName(name); !ok {
		return half{noneReason: "the name is not valid"}, nil
	}
	var last error
	for range tries {
		for _, server := range servers {
			answer, err := askServer(ctx, server, name, kind)
			if err == nil {
				return answer, nil
			}
			last = fmt.Errorf("%s: %w", server, err)
			if ctx.Err() != nil {
				return half{}, last
			}
		}
	}
	return half{}, last
}

// askServer asks one server, by TCP if the answer does not fit a packet.
func askServer(ctx context.Context, server, name string, kind uint16) (half, error) {
	query := new(dns.Msg).SetQuestion(name, kind).SetEdns0(maxUDP, false)
	response, err := exchange(ctx, server, "udp", query)
	if err == nil && response.Truncated {
		response, err = exchange(ctx, server, "tcp", query)
	}
	if err != nil {
		return half{}, plain(err)
	}
	switch response.Rcode {
	case dns.RcodeSuccess:
		return addressesIn(response, name, kind), nil
	case dns.RcodeNameError:
		return half{noneReason: noSuchName}, nil
	default:
		return half{}, errors.New("it answers " + dns.RcodeToString[response.Rcode])
	}
}

func exchange(ctx context.Context, server, network string, query *dns.Msg) (*dns.Msg, error) {
	c := dns.Client{Net: network, Timeout: tryTimeout, UDPSize: maxUDP}
	response, _, err := c.ExchangeContext(ctx, query, server)
	if err != nil {
		return nil, err
	}
	if !response.Response || len(response.Question) != 1 || !strings.EqualFold(response.Question[0].Name, query.Question[0].Name) ||
		response.Question[0].Qtype != query.Question[0].Qtype {
		return nil, errors.New("it answers another question")
	}
	return response, nil
}

// plain omits the varying parts of an error, such as ports.
func plain(err error) error {
	if wait, ok := errors.AsType[net.Error](err); ok && wait.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		return errors.New("no answer in time")
	}
	if call, ok := errors.AsType[*os.SyscallError](err); ok {
		return call.Err
	}
	if broken, ok := errors.AsType[*dns.Error](err); ok {
		return broken
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err
	}
	return err
}

// addressesIn returns the addresses that a response has for a name or its aliases.
func addressesIn(response *dns.Msg, name string, kind uint16) half {
	var found half
	noteTTL := func(header *dns.RR_Header) {
		if ttl := time.Duration(header.Ttl) * time.Second; len(found.addresses) == 0 && found.ttl == 0 || ttl < found.ttl {
			found.ttl = ttl
		}
	}
	for range maxChain {
		alias := ""
		for _, record := range response.Answer {
			if !strings.EqualFold(record.Header().Name, name) {
				continue
			}
			var ip net.IP
			switch r := record.(type) {
			case *dns.A:
				ip = r.A
			case *dns.AAAA:
				ip = r.AAAA
			case *dns.CNAME:
				alias = r.Target
				noteTTL(r.Header())
				continue
			}
			if address, ok := usable(ip, kind); ok && !slices.Contains(found.addresses, address) {
				noteTTL(record.Header())
				found.addresses = append(found.addresses, address)
			}
		}
		if len(found.addresses) > 0 {
			return found
		}
		if alias == "" {
			break
		}
		name = alias
	}
	return half{noneReason: "it has no such addresses"}
}

// usable reports whether an address is of the right kind and may be an endpoint's.
func usable(ip net.IP, kind uint16) (netip.Addr, bool) {
	address, ok := netip.AddrFromSlice(ip)
	address = address.Unmap()
	return address, ok && address.Is4() == (kind == dns.TypeA) && !address.IsUnspecified() && !address.IsMulticast() &&
		address != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

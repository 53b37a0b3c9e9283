package hold

import (
	"hash/fnv"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/source"
)

// eachDifference visits what differs between two versions of a cluster, of which one may
// be nil: its configuration, under the empty key, and endpoints by address. Weights and
// priorities of localities do not count: some servers derive them from the endpoints
// that are there.
func eachDifference(before, after *source.Cluster, visit func(key string, was, is uint64)) {
	var p printer
	if was, is := p.cluster(before), p.cluster(after); was != is {
		visit("", was, is)
	}
	if before == nil || after == nil || before.Assignment == after.Assignment {
		return
	}
	a, b := p.endpoints(before.Assignment), p.endpoints(after.Assignment)
	for len(a) > 0 && len(b) > 0 && a[0].value == b[0].value {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1].value == b[len(b)-1].value {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	was, is := byAddress(a), byAddress(b)
	for address, value := range was {
		if is[address] != value {
			visit(address, value, is[address])
		}
	}
	for address, value := range is {
		if _, known := was[address]; !known {
			visit(address, 0, value)
		}
	}
}

// print is an endpoint and a hash of what is said of it.
type print struct {
	endpoint *endpointv3.LbEndpoint
	value    uint64
}

// byAddress joins what is said of an address that is there several times.
func byAddress(prints []print) map[string]uint64 {
	all := make(map[string]uint64, len(prints))
	for _, one := range prints {
		if address := addressOf(one.endpoint); address != "" {
			all[address] += one.value
		}
	}
	return all
}

// printer makes hashes.
type printer struct{ buffer []byte }

// of adds messages to a hash.
func (p *printer) of(messages ...proto.Message) uint64 {
	h := fnv.New64a()
	for _, m := range messages {
		// It fails for no message that was decoded.
		p.buffer, _ = proto.MarshalOptions{Deterministic: true}.MarshalAppend(p.buffer[:0], m)
		_, _ = h.Write(p.buffer)
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}

// cluster makes the hash of a cluster without its endpoints; 0 is none.
func (p *printer) cluster(c *source.Cluster) uint64 {
	if c == nil {
		return 0
	}
	value := p.of(c.Config)
	if c.Rejected != "" {
		value++
	}
	return value
}

func (p *printer) endpoints(a *source.Assignment) (all []print) {
	for _, l := range a.Message().GetEndpoints() {
		place := p.of(l.GetLocality())
		for _, e := range l.GetLbEndpoints() {
			all = append(all, print{e, p.of(e) ^ place})
		}
	}
	return all
}

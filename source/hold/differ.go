package hold

import (
	"hash/fnv"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/source"
)

// eachDifference visits the differences between two versions of a cluster, of which one may be
// nil: its configuration, under the empty key, and endpoints by address. Weights and priorities
// of localities do not count: some servers derive them from the present endpoints.
func eachDifference(before, after *source.Cluster, visit func(key string, previous, current uint64)) {
	var p printer
	if previous, current := p.cluster(before), p.cluster(after); previous != current {
		visit("", previous, current)
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
	previous, current := byAddress(a), byAddress(b)
	for address, value := range previous {
		if current[address] != value {
			visit(address, value, current[address])
		}
	}
	for address, value := range current {
		if _, ok := previous[address]; !ok {
			visit(address, 0, value)
		}
	}
}

// print is an endpoint and a hash of its content.
type print struct {
	endpoint *endpointv3.LbEndpoint
	value    uint64
}

// byAddress joins the hashes of repeated addresses.
func byAddress(prints []print) map[string]uint64 {
	sums := make(map[string]uint64, len(prints))
	for _, p := range prints {
		if address := addressOf(p.endpoint); address != "" {
			sums[address] += p.value
		}
	}
	return sums
}

// printer makes hashes.
type printer struct{ buffer []byte }

// sum adds messages to a hash.
func (p *printer) sum(messages ...proto.Message) uint64 {
	h := fnv.New64a()
	for _, m := range messages {
		// It fails for no decoded message.
		p.buffer, _ = proto.MarshalOptions{Deterministic: true}.MarshalAppend(p.buffer[:0], m)
		_, _ = h.Write(p.buffer)
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}

// cluster returns the hash of a cluster without its endpoints; 0 for none.
func (p *printer) cluster(c *source.Cluster) uint64 {
	if c == nil {
		return 0
	}
	value := p.sum(c.Config)
	if c.Rejected != "" {
		value++
	}
	return value
}

func (p *printer) endpoints(a *source.Assignment) (prints []print) {
	for _, l := range a.Message().GetEndpoints() {
		place := p.sum(l.GetLocality())
		for _, e := range l.GetLbEndpoints() {
			prints = append(prints, print{e, p.sum(e) ^ place})
		}
	}
	return prints
}

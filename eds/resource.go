package eds

import (
	"fmt"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/health"
)

var deterministic = proto.MarshalOptions{Deterministic: true}

// resource is the content of a slot: the latest frame and, of an assignment, the health
// that the next frame will have.
type resource struct {
	frame  *frame
	base   uint64   // hash of the message with every health that hdsd sets UNKNOWN
	at     []uint32 // where in the frame's bytes the health bytes are
	health []byte   // their latest values
	stale  bool     // the frame does not have these yet

	forGRPC *resource // the same for gRPC clients, which shares health; nil: no such client has asked
}

// of returns the content for gRPC clients, or that for all others. The former is made when the
// first gRPC client asks.
func (r *resource) of(gRPC bool) *resource {
	if !gRPC {
		return r
	}
	if r.forGRPC == nil {
		r.forGRPC = complete(r)
	}
	return r.forGRPC
}

// setHealth sets the health of one endpoint.
func (r *resource) setHealth(index int, status byte) {
	r.health[index] = status
	r.stale = true
	if r.forGRPC != nil {
		r.forGRPC.stale = true
	}
}

// current returns the frame with the latest health in it.
func (r *resource) current() *frame {
	if r.stale {
		r.frame = r.frame.clone()
		r.finish()
	}
	return r.frame
}

// finish puts health and version into a frame that nobody else has yet.
func (r *resource) finish() {
	r.fill(r.frame, r.health)
	r.stale = false
}

func (r *resource) fill(f *frame, health []byte) {
	for i, at := range r.at {
		f.bytes[at] = health[i]
	}
	version := r.base
	if len(health) > 0 {
		var digest xxhash.Digest
		digest.Reset()
		var base [8]byte
		for i := range base {
			base[i] = byte(r.base >> (8 * i))
		}
		digest.Write(base[:])
		digest.Write(health)
		version = digest.Sum64()
	}
	f.setVersion(version)
}

// with returns a new frame in which some health differs.
func (r *resource) with(own map[int]byte) *frame {
	health := slices.Clone(r.health)
	for i, status := range own {
		health[i] = status
	}
	f := r.frame.clone()
	r.fill(f, health)
	return f
}

// newCluster encodes a cluster.
func newCluster(of Cluster) (*resource, error) {
	c := of.Message
	message, err := deterministic.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode cluster %q: %w", c.GetName(), err)
	}
	r := &resource{frame: newFrame(resourcev3.ClusterType, c.GetName(), message), base: xxhash.Sum64(message)}
	r.frame.service = serviceName(c)
	r.frame.checked = of.Checked && r.frame.service != ""
	r.finish()
	return r, nil
}

// decided lists the lb endpoints of an assignment whose health verdicts decide, packed
// because there may be millions.
type decided struct {
	all     []health.EndpointID // one lb endpoint after the other
	ends    []uint32            // of each lb endpoint: where its ids end
	sources []health.Status     // of each: the source's word; Unknown says nothing
}

func (d *decided) add(ids []health.EndpointID, source health.Status) {
	d.all = append(d.all, ids...)
	d.ends, d.sources = append(d.ends, uint32(len(d.all))), append(d.sources, source)
}

func (d *decided) len() int { return len(d.ends) }

// ids returns those whose verdicts decide the i-th lb endpoint.
func (d *decided) ids(i int) []health.EndpointID {
	if i == 0 {
		return d.all[:d.ends[0]]
	}
	return d.all[d.ends[i-1]:d.ends[i]]
}

// status returns the health to publish of the i-th lb endpoint, given the verdict of each
// id: the worst of them, combined with the source's word.
func (d *decided) status(i int, of func(health.EndpointID) health.Status) health.Status {
	ids := d.ids(i)
	ours := of(ids[0])
	for _, id := range ids[1:] {
		ours = health.Worse(ours, of(id))
	}
	return Combine(ours, d.sources[i])
}

// Combine returns the health to publish of a verdict and the source's word: the worse of
// both. Unknown on either side says nothing.
func Combine(ours, source health.Status) health.Status {
	switch {
	case source == health.Unknown:
		return ours
	case ours == health.Unknown:
		return source
	default:
		return health.Worse(ours, source)
	}
}

// newAssignment encodes an assignment. It also returns the endpoints that verdicts
// decide, in the order of the resource's health.
func newAssignment(a *Assignment, of func(health.EndpointID) health.Status) (*resource, decided, error) {
	s := splicer{ours: func(locality, endpoint int) bool { return len(idsOf(a.IDs, locality, endpoint)) > 0 }}
	message, err := s.assignment(a.Wire, a.Name)
	if err != nil {
		return nil, decided{}, fmt.Errorf("encode assignment %q: %w", a.Name, err)
	}
	endpoints := decidedOf(a, s.says)
	if len(message) > math.MaxInt32 || len(s.at) != endpoints.len() {
		return nil, decided{}, fmt.Errorf("encode assignment %q: %d bytes with %d endpoints where %d were expected",
			a.Name, len(message), len(s.at), endpoints.len())
	}

	r := &resource{frame: newFrame(resourcev3.EndpointType, a.Name, message), base: xxhash.Sum64(message)}
	r.at, r.health = make([]uint32, len(s.at)), make([]byte, len(s.at))
	for i, at := range s.at {
		r.at[i] = uint32(r.frame.value + at)
		r.health[i] = byte(endpoints.status(i, of))
	}
	r.finish()
	return r, endpoints, nil
}

// decidedOf lists what verdicts decide in an assignment, given what the source says of each.
func decidedOf(a *Assignment, says []health.Status) decided {
	size := 0
	for l := range a.IDs {
		for _, ids := range a.IDs[l] {
			size += len(ids)
		}
	}
	d := decided{make([]health.EndpointID, 0, size), make([]uint32, 0, len(says)), make([]health.Status, 0, len(says))}
	for l := range a.IDs {
		for _, ids := range a.IDs[l] {
			if len(ids) == 0 {
				continue
			}
			source := health.Unknown
			if !a.Overruled && d.len() < len(says) {
				source = says[d.len()]
			}
			d.add(ids, source)
		}
	}
	return d
}

func idsOf(ids [][][]health.EndpointID, locality, endpoint int) []health.EndpointID {
	if locality >= len(ids) || endpoint >= len(ids[locality]) {
		return nil
	}
	return ids[locality][endpoint]
}

// SourceStatus returns the health of an endpoint as its source says. A value that this
// release does not know is Unknown, as it is to Envoy.
func SourceStatus(e *endpointv3.LbEndpoint) health.Status {
	return statusOf(int64(e.GetHealthStatus()))
}

func statusOf(value int64) health.Status {
	if value < 0 || value > math.MaxUint8 || !health.Status(value).Valid() {
		return health.Unknown
	}
	return health.Status(value)
}

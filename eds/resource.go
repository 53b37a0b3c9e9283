package eds

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/envoy"
	"hdsd/health"
	"hdsd/publish"
)

var deterministic = proto.MarshalOptions{Deterministic: true}

// resource is the content of a slot: the latest frame and, for an assignment, the health of the
// next frame.
type resource struct {
	frame   *frame
	base    uint64   // hash of the message with every health that hdsd sets UNKNOWN
	offsets []uint32 // positions of the health bytes in the frame
	health  []byte   // their latest values
	stale   bool     // the frame does not have these yet

	forGRPC *resource // the same for gRPC clients, which shares health; nil: no such client has asked
}

// forClient returns the content for gRPC clients, or that for all others. The former is made for
// the first gRPC client.
func (r *resource) forClient(gRPC bool) *resource {
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

// finish puts health and version into a frame without other users yet.
func (r *resource) finish() {
	r.fill(r.frame, r.health)
	r.stale = false
}

func (r *resource) fill(f *frame, health []byte) {
	for i, offset := range r.offsets {
		f.bytes[offset] = health[i]
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

// withHealth returns a new frame with some changes of health.
func (r *resource) withHealth(changes map[int]byte) *frame {
	health := slices.Clone(r.health)
	for i, status := range changes {
		health[i] = status
	}
	f := r.frame.clone()
	r.fill(f, health)
	return f
}

// newCluster encodes a cluster.
func newCluster(cluster publish.Cluster) (*resource, error) {
	c := cluster.Message
	message, err := deterministic.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode cluster %q: %w", c.GetName(), err)
	}
	r := &resource{frame: newFrame(resourcev3.ClusterType, c.GetName(), message), base: xxhash.Sum64(message)}
	r.frame.service = envoy.AssignmentName(c)
	r.frame.checked = cluster.Checked && r.frame.service != ""
	r.frame.needed = time.Now().UnixNano()
	r.finish()
	return r, nil
}

// decided lists the lb endpoints of an assignment with health from verdicts, packed because
// there may be millions.
type decided struct {
	idList  []health.EndpointID // one lb endpoint after the other
	ends    []uint32            // of each lb endpoint: the end of its ids
	sources []health.Status     // of each: the source's health; Unknown does not count
}

func (d *decided) add(ids []health.EndpointID, source health.Status) {
	d.idList = append(d.idList, ids...)
	d.ends, d.sources = append(d.ends, uint32(len(d.idList))), append(d.sources, source)
}

func (d *decided) len() int { return len(d.ends) }

// ids returns the endpoints whose verdicts decide the i-th lb endpoint.
func (d *decided) ids(i int) []health.EndpointID {
	if i == 0 {
		return d.idList[:d.ends[0]]
	}
	return d.idList[d.ends[i-1]:d.ends[i]]
}

// status returns the health to publish of the i-th lb endpoint, given the verdict of each id:
// the worst of them, combined with the source's health.
func (d *decided) status(i int, verdict func(health.EndpointID) health.Status) health.Status {
	return publish.Combine(publish.Worst(d.ids(i), verdict), d.sources[i])
}

// newAssignment encodes an assignment. It also returns the endpoints with health from verdicts,
// in the order of the resource's health.
func newAssignment(a *publish.Assignment, verdict func(health.EndpointID) health.Status) (*resource, decided, error) {
	s, err := publish.Splice(a.Wire, a.Name, func(locality, endpoint int) bool { return len(a.Deciding(locality, endpoint)) > 0 })
	if err != nil {
		return nil, decided{}, fmt.Errorf("encode assignment %q: %w", a.Name, err)
	}
	endpoints := decidedOf(a, s.Sources)
	if len(s.Wire) > math.MaxInt32 || len(s.Positions) != endpoints.len() {
		return nil, decided{}, fmt.Errorf("encode assignment %q: %d bytes with %d endpoints where %d were expected",
			a.Name, len(s.Wire), len(s.Positions), endpoints.len())
	}

	r := &resource{frame: newFrame(resourcev3.EndpointType, a.Name, s.Wire), base: xxhash.Sum64(s.Wire)}
	r.offsets, r.health = make([]uint32, len(s.Positions)), make([]byte, len(s.Positions))
	for i, position := range s.Positions {
		r.offsets[i] = uint32(r.frame.value + position)
		r.health[i] = byte(endpoints.status(i, verdict))
	}
	r.finish()
	return r, endpoints, nil
}

// decidedOf lists the endpoints with health from verdicts, given the source's health of each.
func decidedOf(a *publish.Assignment, statuses []health.Status) decided {
	size := 0
	for l := range a.IDs {
		for _, ids := range a.IDs[l] {
			size += len(ids)
		}
	}
	d := decided{make([]health.EndpointID, 0, size), make([]uint32, 0, len(statuses)), make([]health.Status, 0, len(statuses))}
	for l := range a.IDs {
		for _, ids := range a.IDs[l] {
			if len(ids) == 0 {
				continue
			}
			source := health.Unknown
			if !a.Overruled && d.len() < len(statuses) {
				source = statuses[d.len()]
			}
			d.add(ids, source)
		}
	}
	return d
}

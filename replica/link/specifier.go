package link

import (
	"errors"
	"fmt"
	"math"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/envoy/specifier"
	replicav1 "hdsd/gen/hdsd/replica/v1"
	"hdsd/health"
	"hdsd/replica"
)

// deterministic lets equal parts have equal bytes, so that decoders share them.
var deterministic = proto.MarshalOptions{Deterministic: true}

func encodeAssignment(a *replica.Assignment) (*replicav1.Assignment, error) {
	e := &replicav1.Assignment{Checker: a.Checker, Session: a.Session, Serial: a.Serial, Endpoints: make([]uint64, len(a.Endpoints))}
	for i, hash := range a.Endpoints {
		e.Endpoints[i] = uint64(hash)
	}
	var err error
	if e.Specifier, err = encodeSpecifier(a.Specifier); err != nil {
		return nil, fmt.Errorf("the specifier of checker %s: %w", a.Checker, err)
	}
	return e, nil
}

func encodeSpecifier(s *specifier.Specifier) (*replicav1.Specifier, error) {
	e := &replicav1.Specifier{
		Interval: int64(s.Interval), Retell: s.Retell, Clusters: make([]*replicav1.Part, len(s.Clusters)), Addresses: s.Addresses,
	}
	for i := range s.Clusters {
		part, err := encodePart(&s.Clusters[i])
		if err != nil {
			return nil, err
		}
		e.Clusters[i] = part
	}
	for entry, special := range s.Special {
		encoded, err := deterministic.Marshal(special)
		if err != nil {
			return nil, err
		}
		if e.Special == nil {
			e.Special = make(map[uint32][]byte, len(s.Special))
		}
		e.Special[uint32(entry)] = encoded
	}
	return e, nil
}

func encodePart(p *specifier.Part) (*replicav1.Part, error) {
	head, err := deterministic.Marshal(p.Head)
	if err != nil {
		return nil, err
	}
	e := &replicav1.Part{Head: head, Localities: make([]*replicav1.Group, len(p.Localities))}
	for i, g := range p.Localities {
		group := &replicav1.Group{Entries: uint32(g.Entries)}
		if g.Locality != nil {
			if group.Locality, err = deterministic.MarshalAppend([]byte{}, g.Locality); err != nil {
				return nil, err
			}
		}
		e.Localities[i] = group
	}
	return e, nil
}

// decoder decodes messages. Equal parts of the specifiers in use are one: a replica may have
// thousands of checkers, with thousands of clusters each.
type decoder struct {
	heads      pool[healthv3.ClusterHealthCheck, *healthv3.ClusterHealthCheck]
	localities pool[corev3.Locality, *corev3.Locality]
}

func newDecoder() *decoder { return &decoder{} }

func (d *decoder) directions(e *replicav1.Directions) (replica.Message, error) {
	term, err := decodeTerm(e.GetTerm())
	if err != nil {
		return nil, err
	}
	m := replica.Directions{Term: term, Resend: e.GetResend(), Wanted: e.GetWanted()}
	if assignments := e.GetAssignments(); len(assignments) > 0 {
		m.Assignments = make([]replica.Assignment, len(assignments))
		for i, a := range assignments {
			if err := d.assignment(a, &m.Assignments[i]); err != nil {
				return nil, fmt.Errorf("assignment %d: %w", i, err)
			}
		}
	}
	for i, r := range e.GetRefusals() {
		refusal, err := decodeRefusal(r)
		if err != nil {
			return nil, fmt.Errorf("refusal %d: %w", i, err)
		}
		m.Refusals = append(m.Refusals, refusal)
	}
	return m, nil
}

func (d *decoder) assignment(e *replicav1.Assignment, a *replica.Assignment) (err error) {
	*a = replica.Assignment{Checker: e.GetChecker(), Session: e.GetSession(), Serial: e.GetSerial()}
	switch {
	case a.Checker == "":
		return errors.New("no checker")
	case e.GetSpecifier() == nil:
		return errors.New("no specifier")
	}
	if a.Specifier, err = d.specifier(e.GetSpecifier()); err != nil {
		return err
	}
	a.Specifier.Serial = a.Serial
	if len(e.GetEndpoints()) != len(a.Specifier.Addresses) {
		return fmt.Errorf("%d endpoints with %d addresses", len(e.GetEndpoints()), len(a.Specifier.Addresses))
	}
	if len(e.GetEndpoints()) > 0 {
		a.Endpoints = make([]health.Hash, len(e.GetEndpoints()))
		for i, hash := range e.GetEndpoints() {
			a.Endpoints[i] = health.Hash(hash)
		}
	}
	return nil
}

func (d *decoder) specifier(e *replicav1.Specifier) (*specifier.Specifier, error) {
	s := &specifier.Specifier{Interval: time.Duration(e.GetInterval()), Retell: e.GetRetell(), Addresses: e.GetAddresses()}
	if s.Interval <= 0 {
		return nil, fmt.Errorf("reports every %v", s.Interval)
	}
	entries := uint64(0)
	if clusters := e.GetClusters(); len(clusters) > 0 {
		s.Clusters = make([]specifier.Part, len(clusters))
		for i, part := range clusters {
			count, err := d.part(part, &s.Clusters[i])
			if err != nil {
				return nil, fmt.Errorf("cluster %d: %w", i, err)
			}
			entries += count
		}
	}
	if entries != uint64(len(s.Addresses)) {
		return nil, fmt.Errorf("%d entries with %d addresses", entries, len(s.Addresses))
	}
	for entry, encoded := range e.GetSpecial() {
		if uint64(entry) >= entries {
			return nil, fmt.Errorf("an endpoint for entry %d of %d", entry, entries)
		}
		special := new(endpointv3.Endpoint)
		if err := proto.Unmarshal(encoded, special); err != nil {
			return nil, fmt.Errorf("the endpoint of entry %d: %w", entry, err)
		}
		if s.Special == nil {
			s.Special = make(map[int]*endpointv3.Endpoint, len(e.GetSpecial()))
		}
		s.Special[int(entry)] = special
	}
	return s, nil
}

// part decodes a cluster, and returns the number of its entries.
func (d *decoder) part(e *replicav1.Part, p *specifier.Part) (entries uint64, err error) {
	if len(e.GetHead()) == 0 {
		return 0, errors.New("no health check")
	}
	if p.Head, err = d.heads.get(e.GetHead()); err != nil {
		return 0, err
	}
	if len(e.GetLocalities()) == 0 {
		return 0, nil
	}
	p.Localities = make([]specifier.Group, len(e.GetLocalities()))
	for i, group := range e.GetLocalities() {
		if group.GetEntries() > math.MaxInt32 {
			return 0, fmt.Errorf("a locality with %d entries", group.GetEntries())
		}
		g := &p.Localities[i]
		g.Entries = int(group.GetEntries())
		entries += uint64(g.Entries)
		if group.Locality != nil {
			if g.Locality, err = d.localities.get(group.Locality); err != nil {
				return 0, err
			}
		}
	}
	return entries, nil
}

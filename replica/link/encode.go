package link

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/timestamppb"

	replicav1 "hdsd/gen/hdsd/replica/v1"
	"hdsd/health"
	"hdsd/log"
	"hdsd/machine"
	"hdsd/replica"
	"hdsd/ruling"
)

// encode returns the frame of a message. It may share parts with the message.
func encode(m replica.Message) (*replicav1.Frame, error) {
	switch m := m.(type) {
	case replica.Welcome:
		return &replicav1.Frame{Message: &replicav1.Frame_Welcome{Welcome: &replicav1.Welcome{Term: encodeTerm(m.Term), Head: m.Head}}}, nil
	case replica.Report:
		report, err := encodeReport(&m)
		return &replicav1.Frame{Message: &replicav1.Frame_Report{Report: report}}, err
	case replica.Directions:
		directions, err := encodeDirections(&m)
		return &replicav1.Frame{Message: &replicav1.Frame_Directions{Directions: directions}}, err
	}
	return nil, fmt.Errorf("%T is no message between replicas", m)
}

func encodeTerm(t replica.Term) *replicav1.Term {
	return &replicav1.Term{Epoch: t.Epoch, Round: t.Round}
}

func encodeReport(m *replica.Report) (*replicav1.Report, error) {
	r := &replicav1.Report{Term: encodeTerm(m.Term), Full: m.Full, Sessions: make([]*replicav1.Session, len(m.Sessions))}
	for i := range m.Sessions {
		r.Sessions[i] = encodeSession(&m.Sessions[i])
	}
	for i := range m.Orders {
		o, err := encodeOrder(&m.Orders[i])
		if err != nil {
			return nil, err
		}
		r.Orders = append(r.Orders, o)
	}
	var err error
	r.Clusters, err = encodeClusters(m.Clusters)
	return r, err
}

// statusBits are the bits of a vote that have the status; the HTTP status code is above.
const statusBits = 4

func encodeSession(s *replica.Session) *replicav1.Session {
	e := &replicav1.Session{
		Checker: s.Checker, Number: s.Number, Connected: s.Connected, Lost: s.Lost, Ended: s.Ended, Silent: s.Silent,
		Heard: s.Heard, Assigned: s.Assigned, Followed: s.Followed,
	}
	if s.Node != nil {
		e.Node = encodeChecker(s.Node)
	}
	if len(s.Votes) == 0 {
		return e
	}
	e.Endpoints, e.Votes = make([]uint64, len(s.Votes)), make([]uint32, len(s.Votes))
	for i, v := range s.Votes {
		e.Endpoints[i], e.Votes[i] = uint64(v.Endpoint), uint32(v.Status)|uint32(v.HTTPStatusCode)<<statusBits
	}
	return e
}

func encodeChecker(c *health.Checker) *replicav1.Checker {
	e := &replicav1.Checker{
		Locality: encodeLocality(c.Locality), Version: c.Version, Metadata: c.Metadata, Identity: c.Identity,
		Weight: c.Weight, MaxChecksPerSecond: c.MaxChecksPerSecond,
	}
	for _, ability := range slices.Sorted(maps.Keys(c.Abilities)) {
		e.Abilities = append(e.Abilities, string(ability))
	}
	return e
}

// encodeLocality returns nil for no locality.
func encodeLocality(l health.Locality) *replicav1.Locality {
	if l == (health.Locality{}) {
		return nil
	}
	return &replicav1.Locality{Region: l.Region, Zone: l.Zone, SubZone: l.SubZone}
}

func encodeScope(e health.Endpoint) *replicav1.Scope {
	return &replicav1.Scope{Cluster: e.Cluster, Locality: encodeLocality(e.Locality), Address: e.Address}
}

// encodeTime returns nil for the zero time.
func encodeTime(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

func encodeOrderID(id log.OrderID) *replicav1.OrderId {
	return &replicav1.OrderId{Process: id.Process, Number: id.Number}
}

// encodeOrder encodes what the operator asks for, and nothing of what becomes of it.
func encodeOrder(o *replica.Order) (*replicav1.Order, error) {
	e := &replicav1.Order{Id: encodeOrderID(o.ID), Operator: encodeOperator(o.Operator)}
	switch event := o.Event.(type) {
	case *machine.SetOverride:
		v := &event.Override
		e.Order = &replicav1.Order_SetOverride{SetOverride: &replicav1.Override{
			Scope: encodeScope(v.Scope), Status: corev3.HealthStatus(v.Status), Reason: v.Reason, Author: v.Author,
			Since: encodeTime(v.Since), Until: encodeTime(v.Until),
		}}
	case *machine.ClearOverrides:
		e.Order = &replicav1.Order_ClearOverrides{ClearOverrides: &replicav1.ClearOverrides{
			Scope: encodeScope(event.Scope), All: event.All, Author: event.Author,
		}}
	case *machine.Freeze:
		e.Order = &replicav1.Order_Freeze{Freeze: &replicav1.Freeze{Author: event.Author, Reason: event.Reason, Hold: event.Hold}}
	case *machine.Unfreeze:
		e.Order = &replicav1.Order_Unfreeze{Unfreeze: &replicav1.Unfreeze{Author: event.Author}}
	case *machine.SetTrust:
		t := &event.Trust
		e.Order = &replicav1.Order_SetTrust{SetTrust: &replicav1.SetTrust{
			Checker: event.Checker, Level: replicav1.TrustLevel(t.Level), Reason: t.Reason, Author: t.Author, Since: encodeTime(t.Since),
		}}
	case *machine.ClearTrust:
		e.Order = &replicav1.Order_ClearTrust{ClearTrust: &replicav1.ClearTrust{Checker: event.Checker, Author: event.Author}}
	case *machine.Annotate:
		e.Order = &replicav1.Order_Annotate{Annotate: encodeEvent(&event.Event)}
	default:
		return nil, fmt.Errorf("%T is no order of an operator", event)
	}
	return e, nil
}

// encodeOperator returns nil for an unknown operator.
func encodeOperator(o *log.Operator) *replicav1.Operator {
	if o == nil {
		return nil
	}
	return &replicav1.Operator{Identity: o.Identity, Address: o.Address, Time: encodeTime(o.Time)}
}

func encodeEvent(e *log.Event) *replicav1.Event {
	return &replicav1.Event{
		Time: encodeTime(e.Time), Kind: int32(e.Kind), Cluster: e.Cluster, Address: e.Address, Checker: e.Checker, Locality: encodeLocality(e.Locality),
		Author: e.Author, Identity: e.Identity, Text: e.Text, Whole: e.Whole,
	}
}

func encodeDirections(m *replica.Directions) (*replicav1.Directions, error) {
	d := &replicav1.Directions{Term: encodeTerm(m.Term), Assignments: make([]*replicav1.Assignment, len(m.Assignments)), Resend: m.Resend, Wanted: m.Wanted}
	for i := range m.Assignments {
		a, err := encodeAssignment(&m.Assignments[i])
		if err != nil {
			return nil, err
		}
		d.Assignments[i] = a
	}
	for i := range m.Refusals {
		d.Refusals = append(d.Refusals, encodeRefusal(&m.Refusals[i]))
	}
	return d, nil
}

func encodeRefusal(r *replica.Refusal) *replicav1.Refusal {
	e := &replicav1.Refusal{Id: encodeOrderID(r.ID)}
	var impossible *ruling.Refusal
	switch {
	case errors.As(r.Err, &impossible):
		e.Kind, e.Text = replicav1.RefusalKind_REFUSAL_KIND_IMPOSSIBLE, impossible.Text
		e.NotFound, e.UnknownCluster = impossible.NotFound, impossible.UnknownCluster
	case errors.Is(r.Err, machine.ErrTrustFull):
		e.Kind = replicav1.RefusalKind_REFUSAL_KIND_TRUST_FULL
	default:
		e.Text = r.Err.Error()
	}
	return e
}

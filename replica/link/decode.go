package link

import (
	"errors"
	"fmt"
	"math"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	replicav1 "hdsd/gen/hdsd/replica/v1"
	"hdsd/health"
	"hdsd/log"
	"hdsd/machine"
	"hdsd/replica"
	"hdsd/ruling"
)

// decode returns the message of a frame, which may share parts with it. A decoded specifier has no ids.
func (d *decoder) decode(f *replicav1.Frame) (replica.Message, error) {
	switch m := f.GetMessage().(type) {
	case *replicav1.Frame_Welcome:
		term, err := decodeTerm(m.Welcome.GetTerm())
		return replica.Welcome{Term: term, Head: m.Welcome.GetHead()}, err
	case *replicav1.Frame_Report:
		return decodeReport(m.Report)
	case *replicav1.Frame_Directions:
		return d.directions(m.Directions)
	case *replicav1.Frame_Hello:
		return nil, errors.New("a second hello")
	}
	return nil, errors.New("a frame without a message")
}

func decodeTerm(t *replicav1.Term) (replica.Term, error) {
	if t == nil {
		return replica.Term{}, errors.New("no term")
	}
	return replica.Term{Epoch: t.GetEpoch(), Round: t.GetRound()}, nil
}

func decodeReport(r *replicav1.Report) (replica.Message, error) {
	term, err := decodeTerm(r.GetTerm())
	if err != nil {
		return nil, err
	}
	m := replica.Report{Term: term, Full: r.GetFull()}
	if sessions := r.GetSessions(); len(sessions) > 0 {
		m.Sessions = make([]replica.Session, len(sessions))
		for i, s := range sessions {
			if i > 0 && s.GetChecker() <= sessions[i-1].GetChecker() {
				return nil, fmt.Errorf("session %d of a report is not in the order of checkers", i)
			}
			if err := decodeSession(s, &m.Sessions[i]); err != nil {
				return nil, fmt.Errorf("session %d of a report: %w", i, err)
			}
		}
	}
	for i, o := range r.GetOrders() {
		order, err := decodeOrder(o)
		if err != nil {
			return nil, fmt.Errorf("order %d of a report: %w", i, err)
		}
		m.Orders = append(m.Orders, order)
	}
	m.Clusters, err = decodeClusters(r.GetClusters())
	return m, err
}

func decodeSession(e *replicav1.Session, s *replica.Session) (err error) {
	*s = replica.Session{
		Checker: e.GetChecker(), Number: e.GetNumber(), Connected: e.GetConnected(), Lost: e.GetLost(), Ended: e.GetEnded(),
		Silent: e.GetSilent(), Heard: e.GetHeard(), Assigned: e.GetAssigned(), Followed: e.GetFollowed(),
	}
	if s.Checker == "" {
		return errors.New("no checker")
	}
	if e.GetNode() != nil {
		if s.Node, err = decodeChecker(s.Checker, e.GetNode()); err != nil {
			return err
		}
	}
	endpoints, votes := e.GetEndpoints(), e.GetVotes()
	if len(endpoints) != len(votes) {
		return fmt.Errorf("%d endpoints with %d votes", len(endpoints), len(votes))
	}
	if len(votes) == 0 {
		return nil
	}
	s.Votes = make([]replica.Vote, len(votes))
	for i, v := range votes {
		status, code := health.Status(v&(1<<statusBits-1)), v>>statusBits
		if !status.Valid() || code > math.MaxUint16 {
			return fmt.Errorf("vote %#x", v)
		}
		s.Votes[i] = replica.Vote{Endpoint: health.Hash(endpoints[i]), Status: status, HTTPStatusCode: uint16(code)}
	}
	return nil
}

func decodeChecker(id string, e *replicav1.Checker) (*health.Checker, error) {
	c := &health.Checker{
		ID: id, Locality: decodeLocality(e.GetLocality()), Version: e.GetVersion(), Identity: e.GetIdentity(),
		Weight: e.GetWeight(), MaxChecksPerSecond: e.GetMaxChecksPerSecond(), Abilities: make(health.Abilities, len(e.GetAbilities())),
	}
	if !isAmount(c.Weight) || !isAmount(c.MaxChecksPerSecond) {
		return nil, fmt.Errorf("a checker of weight %v with %v checks per second", c.Weight, c.MaxChecksPerSecond)
	}
	for _, ability := range e.GetAbilities() {
		c.Abilities[health.Ability(ability)] = struct{}{}
	}
	if len(e.GetMetadata()) > 0 {
		c.Metadata = e.GetMetadata()
	}
	return c, nil
}

// isAmount reports whether a number is an amount: NaN, infinite and negative numbers are not.
func isAmount(n float64) bool { return n >= 0 && n <= math.MaxFloat64 }

func decodeLocality(l *replicav1.Locality) health.Locality {
	return health.Locality{Region: l.GetRegion(), Zone: l.GetZone(), SubZone: l.GetSubZone()}
}

// decodeScope refuses a missing scope: an empty one is all endpoints.
func decodeScope(s *replicav1.Scope) (health.Endpoint, error) {
	if s == nil {
		return health.Endpoint{}, errors.New("no scope")
	}
	return health.Endpoint{Cluster: s.GetCluster(), Locality: decodeLocality(s.GetLocality()), Address: s.GetAddress()}, nil
}

func decodeTime(t *timestamppb.Timestamp) (time.Time, error) {
	switch {
	case t == nil:
		return time.Time{}, nil
	case t.GetNanos() < 0 || t.GetNanos() >= int32(time.Second):
		return time.Time{}, fmt.Errorf("a time with %d nanoseconds", t.GetNanos())
	}
	return time.Unix(t.GetSeconds(), int64(t.GetNanos())).UTC(), nil
}

func decodeOrderID(id *replicav1.OrderId) (log.OrderID, error) {
	if id == nil {
		return log.OrderID{}, errors.New("no id of an order")
	}
	return log.OrderID{Process: id.GetProcess(), Number: id.GetNumber()}, nil
}

func decodeOrder(e *replicav1.Order) (o replica.Order, err error) {
	if o.ID, err = decodeOrderID(e.GetId()); err != nil {
		return o, err
	}
	if o.Operator, err = decodeOperator(e.GetOperator()); err != nil {
		return o, err
	}
	switch order := e.GetOrder().(type) {
	case *replicav1.Order_SetOverride:
		o.Event, err = decodeOverride(order.SetOverride)
	case *replicav1.Order_ClearOverrides:
		clearing := &machine.ClearOverrides{All: order.ClearOverrides.GetAll(), Author: order.ClearOverrides.GetAuthor()}
		clearing.Scope, err = decodeScope(order.ClearOverrides.GetScope())
		o.Event = clearing
	case *replicav1.Order_Freeze:
		o.Event = &machine.Freeze{Author: order.Freeze.GetAuthor(), Reason: order.Freeze.GetReason(), Hold: order.Freeze.GetHold()}
	case *replicav1.Order_Unfreeze:
		o.Event = &machine.Unfreeze{Author: order.Unfreeze.GetAuthor()}
	case *replicav1.Order_SetTrust:
		o.Event, err = decodeSetTrust(order.SetTrust)
	case *replicav1.Order_ClearTrust:
		o.Event = &machine.ClearTrust{Checker: order.ClearTrust.GetChecker(), Author: order.ClearTrust.GetAuthor()}
	case *replicav1.Order_Annotate:
		o.Event, err = decodeAnnotate(order.Annotate)
	default:
		err = errors.New("no order that this release knows")
	}
	return o, err
}

// decodeOperator returns nil for an unknown operator.
func decodeOperator(e *replicav1.Operator) (*log.Operator, error) {
	if e == nil {
		return nil, nil
	}
	given, err := decodeTime(e.GetTime())
	return &log.Operator{Identity: e.GetIdentity(), Address: e.GetAddress(), Time: given}, err
}

func decodeAnnotate(e *replicav1.Event) (machine.Event, error) {
	noted, err := decodeTime(e.GetTime())
	return &machine.Annotate{Event: log.Event{
		Time: noted, Kind: log.EventKind(e.GetKind()), Cluster: e.GetCluster(), Address: e.GetAddress(), Checker: e.GetChecker(),
		Locality: decodeLocality(e.GetLocality()), Author: e.GetAuthor(), Identity: e.GetIdentity(), Text: e.GetText(), Whole: e.GetWhole(),
	}}, err
}

func decodeOverride(e *replicav1.Override) (machine.Event, error) {
	scope, err := decodeScope(e.GetScope())
	since, wrongSince := decodeTime(e.GetSince())
	until, wrongUntil := decodeTime(e.GetUntil())
	if err := errors.Join(err, wrongSince, wrongUntil); err != nil {
		return nil, err
	}
	if e.GetStatus() < 0 || e.GetStatus() > math.MaxUint8 || !health.Status(e.GetStatus()).Valid() {
		return nil, fmt.Errorf("an override with the status %d", e.GetStatus())
	}
	return &machine.SetOverride{Override: log.Override{
		Scope: scope, Status: health.Status(e.GetStatus()), Reason: e.GetReason(), Author: e.GetAuthor(), Since: since, Until: until,
	}}, nil
}

func decodeSetTrust(e *replicav1.SetTrust) (machine.Event, error) {
	since, err := decodeTime(e.GetSince())
	if err != nil {
		return nil, err
	}
	if e.GetLevel() < 0 || e.GetLevel() > replicav1.TrustLevel(log.Trusted) {
		return nil, fmt.Errorf("trust of level %d", e.GetLevel())
	}
	return &machine.SetTrust{Checker: e.GetChecker(), Trust: log.Trust{
		Level: log.TrustLevel(e.GetLevel()), Reason: e.GetReason(), Author: e.GetAuthor(), Since: since,
	}}, nil
}

func decodeRefusal(e *replicav1.Refusal) (r replica.Refusal, err error) {
	if r.ID, err = decodeOrderID(e.GetId()); err != nil {
		return r, err
	}
	switch e.GetKind() {
	case replicav1.RefusalKind_REFUSAL_KIND_OTHER:
		r.Err = errors.New(e.GetText())
	case replicav1.RefusalKind_REFUSAL_KIND_IMPOSSIBLE:
		r.Err = &ruling.Refusal{NotFound: e.GetNotFound(), UnknownCluster: e.GetUnknownCluster(), Text: e.GetText()}
	case replicav1.RefusalKind_REFUSAL_KIND_TRUST_FULL:
		r.Err = machine.ErrTrustFull
	default:
		return r, fmt.Errorf("a refusal of kind %d", e.GetKind())
	}
	return r, nil
}

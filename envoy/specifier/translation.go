package specifier

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hdsd/envoy"
	"hdsd/health"
)

// translation is the state of Translate.
type translation struct {
	result  *Cluster
	options Options
	checks  []*corev3.HealthCheck // reviewed, with defaults filled in; criteria as in the source
	needs   map[health.Ability]bool
	sockets *sockets
	forms   map[choice]int    // by choice: index in out.forms
	wrong   map[choice]string // by choice: reason why it cannot be used

	present  locality
	places   map[health.Locality]int // by name: the first locality that has it
	seen     map[seen]bool
	reviewed candidate // the present endpoint
}

// locality is a locality of the source.
type locality struct {
	name   health.Locality
	first  int // the first locality of this name
	review review
}

// seen is an endpoint that was translated: an address, and the first locality of its locality's
// name.
type seen struct {
	first   int
	address string
}

// cluster translates everything but the endpoints. It returns the faults.
func (t *translation) cluster(config *clusterv3.Cluster, a *endpointv3.ClusterLoadAssignment, checks []*corev3.HealthCheck) string {
	r := t.look(config, a, checks)
	if len(r.problems) > 0 {
		return r.reason()
	}
	t.needs = r.needs
	t.fill(t.outside(config))
	return validate(&healthv3.ClusterHealthCheck{ClusterName: t.result.Name, HealthChecks: t.checks})
}

// look reviews everything in a cluster but the endpoints.
func (t *translation) look(config *clusterv3.Cluster, a *endpointv3.ClusterLoadAssignment, checks []*corev3.HealthCheck) *review {
	r := &review{options: t.options}
	name := t.outside(config)
	switch wrong := shortText(protoreflect.ValueOfString(name)); {
	case wrong != "":
		r.problem("name", "%s", wrong)
	case name == "":
		r.problem("name", "is missing")
	}
	if config.GetTransportSocketMatcher() != nil {
		r.problem("transport_socket_matcher", "hdsd cannot tell which socket it selects; use transport_socket_matches alone")
	}
	if len(checks) == 0 {
		r.problem("health_checks", "is missing, and a checker would call every endpoint unhealthy; give one")
	}
	for i, check := range checks {
		check = proto.CloneOf(check)
		r.message(fmt.Sprintf("health_checks[%d]", i), check.ProtoReflect())
		t.checks = append(t.checks, check)
	}
	if clusterSocket := t.sockets.list[len(t.sockets.matches)]; len(t.sockets.matches) == 0 && clusterSocket.wrong != "" {
		r.problem("", "%s", clusterSocket.wrong)
	}
	return r
}

// Checkers spread the first probes of endpoints over the interval, since all later ones follow at the same
// distance: bursts would stay bursts, and an Envoy that opens thousands of connections in one go finds their
// requests timed out before it has written them. An endpoint is unknown until its first probe, so that of a
// longer interval waits for longestInitialJitter at most, and intervals then differ by driftPercent: first
// bursts spread in the course of some rounds.
const (
	longestInitialJitter = 10 * time.Second
	driftPercent         = 10
)

// outside returns the name of the cluster for its endpoints. They never see hdsd's own.
func (t *translation) outside(config *clusterv3.Cluster) string {
	return cmp.Or(config.GetName(), t.result.Name)
}

// fill sets defaults that suit a checker, and reads the timing. The name is the one outside.
func (t *translation) fill(name string) {
	for i, check := range t.checks {
		interval := max(check.Interval.AsDuration(), t.options.MinInterval)
		t.fillIntervals(check, interval)
		t.raiseIntervals(check)
		if check.InitialJitter == nil {
			check.InitialJitter = durationpb.New(min(interval, longestInitialJitter))
			if interval > longestInitialJitter && check.IntervalJitter == nil && check.IntervalJitterPercent == 0 {
				check.IntervalJitterPercent = driftPercent
			}
		}
		check.UnhealthyThreshold, check.HealthyThreshold = atLeastOne(check.UnhealthyThreshold), atLeastOne(check.HealthyThreshold)
		if len(t.checks) > 1 {
			check.Name = fmt.Sprintf("check-%d", i)
			t.need(health.SeveralChecks)
		}
		fillHost(check, name)
		hexPayloads(check.GetTcpHealthCheck())
		t.result.Timing.slowest(check, slices.ContainsFunc(t.checks, isRedis))
	}
}

// fillIntervals sets the intervals of an HDS client, whose clusters never have traffic, to those
// of an Envoy with traffic. The no_traffic_interval is that of endpoints that are down, or about
// to go down or to come back.
func (t *translation) fillIntervals(check *corev3.HealthCheck, interval time.Duration) {
	if !t.options.NoTrafficIntervals {
		check.NoTrafficInterval, check.NoTrafficHealthyInterval = nil, nil
	}
	if check.NoTrafficHealthyInterval == nil {
		check.NoTrafficHealthyInterval = cmp.Or(check.NoTrafficInterval, durationpb.New(interval))
	}
	if check.NoTrafficInterval == nil {
		check.NoTrafficInterval = durationpb.New(min(interval, cmp.Or(check.UnhealthyInterval, check.Interval).AsDuration()))
	}
}

// raiseIntervals lengthens the intervals of a check that are too short.
func (t *translation) raiseIntervals(check *corev3.HealthCheck) {
	for _, interval := range []**durationpb.Duration{
		&check.Interval, &check.NoTrafficInterval, &check.NoTrafficHealthyInterval,
		&check.UnhealthyInterval, &check.UnhealthyEdgeInterval, &check.HealthyEdgeInterval,
	} {
		short := *interval
		if short == nil || short.AsDuration() >= t.options.MinInterval {
			continue
		}
		*interval = durationpb.New(t.options.MinInterval)
		if t.result.Raised == 0 || short.AsDuration() < t.result.Raised {
			t.result.Raised = short.AsDuration()
		}
	}
}

// atLeastOne returns a threshold as Envoy counts it, for which 0 is 1.
func atLeastOne(threshold *wrapperspb.UInt32Value) *wrapperspb.UInt32Value {
	return wrapperspb.UInt32(max(threshold.GetValue(), 1))
}

// fillHost sets the host name that Envoy's checks send by default. That is the
// cluster's name, which may differ in the specifier.
func fillHost(check *corev3.HealthCheck, name string) {
	if h := check.GetHttpHealthCheck(); h != nil && h.Host == "" {
		h.Host = name
	}
	if g := check.GetGrpcHealthCheck(); g != nil && g.Authority == "" {
		g.Authority = name
	}
}

// hexPayloads writes binary payloads of a TCP check in hexadecimal. Envoy 1.40 does
// not send a binary payload, and waits in vain.
func hexPayloads(check *corev3.HealthCheck_TcpHealthCheck) {
	for _, p := range append(check.GetReceive(), check.GetSend()) {
		if binary := p.GetBinary(); len(binary) > 0 {
			p.Payload = &corev3.HealthCheck_Payload_Text{Text: hex.EncodeToString(binary)}
		}
	}
}

// slowest adopts the slower timing of a check. The connections of Redis checks are traffic for
// Envoy, which makes it use other intervals.
func (t *Timing) slowest(check *corev3.HealthCheck, traffic bool) {
	interval := max(check.NoTrafficInterval.AsDuration(), check.NoTrafficHealthyInterval.AsDuration())
	if traffic {
		interval = max(interval, check.Interval.AsDuration(), check.UnhealthyInterval.AsDuration(),
			check.UnhealthyEdgeInterval.AsDuration(), check.HealthyEdgeInterval.AsDuration())
	}
	percent := time.Duration(check.GetIntervalJitterPercent())
	t.Interval = max(t.Interval, interval+interval/100*percent+check.IntervalJitter.AsDuration())
	t.Timeout = max(t.Timeout, check.Timeout.AsDuration())
	t.InitialJitter = max(t.InitialJitter, check.InitialJitter.AsDuration())
	t.UnhealthyThreshold = max(t.UnhealthyThreshold, check.UnhealthyThreshold.GetValue())
	t.HealthyThreshold = max(t.HealthyThreshold, check.HealthyThreshold.GetValue())
}

func (t *translation) need(a health.Ability) {
	if t.needs == nil {
		t.needs = map[health.Ability]bool{}
	}
	t.needs[a] = true
}

const byLEDS = "takes its endpoints by LEDS, by which hdsd asks for none: to have them checked, list them in lb_endpoints alone"

// locality begins a locality. It excludes one whose endpoints are not in the assignment.
func (t *translation) locality(i int, l *endpointv3.LocalityLbEndpoints) {
	name := envoy.Locality(l.GetLocality())
	first, repeated := t.places[name]
	if !repeated {
		first = i
		t.places[name] = i
	}
	t.result.places = append(t.result.places, name)
	t.result.localities = append(t.result.localities, envoy.LocalityMessage(name))
	t.present = locality{name: name, first: first, review: review{options: t.options}}
	if l.GetLocality() != nil {
		t.present.review.message("locality", l.GetLocality().ProtoReflect()) // nothing in it is left out
	}
	if ListedElsewhere(l) {
		t.result.Excluded = append(t.result.Excluded, Exclusion{Address: fmt.Sprintf("endpoints[%d]", i), Reason: byLEDS, Locality: i})
	}
}

// candidate is an endpoint that was reviewed alone.
type candidate struct {
	review   review
	endpoint Endpoint
}

// endpoint translates an endpoint, or excludes it.
func (t *translation) endpoint(i, j int, l *endpointv3.LocalityLbEndpoints, lb *endpointv3.LbEndpoint) {
	c := t.review(i, j, l, lb)
	if c == nil {
		return
	}
	if len(c.review.problems) == 0 {
		c.endpoint.form = int32(t.form(&c.review, t.sockets.choose(t.checks, lb, l)))
	}
	if !t.exclude(c) {
		t.result.Endpoints = append(t.result.Endpoints, c.endpoint)
	}
}

// review reviews an endpoint by itself. It returns nil if it is not to be checked, or a
// duplicate. The next call changes the result.
func (t *translation) review(i, j int, l *endpointv3.LocalityLbEndpoints, lb *endpointv3.LbEndpoint) *candidate {
	source := lb.GetEndpoint()
	if source.GetHealthCheckConfig().GetDisableActiveHealthCheck() {
		return nil
	}
	address := envoy.AddressOf(lb, i, j)
	if t.seen[seen{t.present.first, address}] {
		return nil
	}
	t.seen[seen{t.present.first, address}] = true
	t.reviewed = candidate{review{options: t.options}, Endpoint{Address: address, Locality: int32(i), Index: int32(j)}}
	c := &t.reviewed
	if ListedElsewhere(l) {
		c.review.problem("its locality", byLEDS)
	}
	c.endpoint.special = c.review.endpoint(source, t.present.review.problems)
	return c
}

// exclude excludes an endpoint with problems; false if it has none.
func (t *translation) exclude(c *candidate) bool {
	if len(c.review.problems) == 0 {
		return false
	}
	e := &c.endpoint
	t.result.Excluded = append(t.result.Excluded, Exclusion{Address: e.Address, Reason: c.review.reason(), Locality: int(e.Locality), Index: int(e.Index)})
	return true
}

// endpoint reviews an endpoint, given the faults of its locality. It returns the message to
// send, or nil if that is an IP address and a port.
func (r *review) endpoint(e *endpointv3.Endpoint, ofLocality []string) *endpointv3.Endpoint {
	if e == nil {
		r.problem("endpoint", "is missing; endpoint_name is not supported")
		return nil
	}
	r.problems = append(r.problems, ofLocality...)
	if len(r.problems) == 0 {
		if a, plain := isPlainEndpoint(e); plain {
			r.target("endpoint.address.socket_address.address", a)
			return nil
		}
	}
	r.looking = true
	r.message("endpoint", e.ProtoReflect())
	if len(r.problems) > 0 {
		return nil
	}
	wire := e // unchanged if possible: a copy takes time
	if r.dirty || !canonical(e) {
		wire = proto.CloneOf(e)
		(&review{}).message("endpoint", wire.ProtoReflect())
		normalize(wire)
	}
	if _, plain := isPlainEndpoint(wire); plain {
		return nil
	}
	if wrong := validate(wire); wrong != "" {
		r.problem("endpoint", "%s", wrong)
	}
	return wire
}

// form returns the form for endpoints with choice c.
func (t *translation) form(r *review, c choice) int {
	if wrong, ok := t.wrong[c]; ok {
		r.problem("", "%s", wrong)
		return 0
	}
	if i, ok := t.forms[c]; ok {
		return i
	}
	chosen := t.sockets.chosen(c)
	wrong := unreachable(t.checks, chosen)
	for _, s := range chosen {
		wrong = max(wrong, s.wrong)
	}
	var form *wireForm
	if wrong == "" {
		form = newForm(t.result.Name, t.checks, chosen)
		wrong = validate(form.start())
	}
	if wrong != "" {
		if t.wrong == nil {
			t.wrong = map[choice]string{}
		}
		t.wrong[c] = wrong
		return t.form(r, c)
	}
	t.forms[c] = len(t.result.forms)
	t.result.forms = append(t.result.forms, form)
	for _, s := range chosen {
		for need := range s.needs {
			t.need(need)
		}
	}
	return t.forms[c]
}

// validate applies Envoy's own rules, as a last check.
func validate(m interface{ ValidateAll() error }) string {
	if err := m.ValidateAll(); err != nil {
		return "Envoy's own rules refuse it: " + err.Error()
	}
	return ""
}

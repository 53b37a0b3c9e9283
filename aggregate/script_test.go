package aggregate_test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"hdsd/aggregate"
	"hdsd/health"
)

// epoch is t=0 of every test.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// usual is how a script's endpoints are checked unless it says otherwise.
var usual = aggregate.Timing{
	Interval: time.Second, Timeout: 500 * time.Millisecond, UnhealthyThreshold: 2, ReportInterval: time.Second,
}

// player plays a script against an aggregator as an owner would: it ticks whenever a
// deadline has come. The language has one command a line, and # for comments:
//
//	options staleness=2500ms settle=5s disagreements=8 share=0.2 release=0.05 release_after=3s
//	options path_disagreements=20 path_share=0.5 zone_views
//	t=0 set e1 interval=1s timeout=500ms jitter=0s threshold=2 report=1s last=HEALTHY
//	t=0 set e1 rule=at_least/2 unobserved=unknown zone=zone1 degraded=200,503
//	t=0 set e1 warm_up=1s staleness=9s disagreements=3 cluster=web half_life=30 mass_hold=10s
//	t=0 set e1 votes=3 quorum_hold=10m
//	t=0 assign e1 a b c     (unassign likewise)
//	t=0 connected a b/zone1 c/region1/zone1 (lost likewise)
//	t=1s report a e1=UNHEALTHY/503 e2=HEALTHY
//	t=1s hear a b c         reports without votes, from here on once a second
//	t=1s silence a          ends that
//	t=1s distrust a why     set by an operator; likewise trust, and judge for automatic trust
//	stall 30s               the owner stands still, then goes on
//	t=1s remove e1
//	t=1s show e1
//
// A line without t= happens at the time of the line before.
type player struct {
	aggregator *aggregate.Aggregator
	now        time.Duration
	ids        map[string]health.EndpointID
	names      []string
	heard      map[string]time.Duration // when each checker that is heard by itself is next
	out        strings.Builder
	watch      func(aggregate.Change) // called for each change, where set
}

func newPlayer() *player {
	return &player{
		aggregator: aggregate.New(aggregate.Options{}),
		ids:        map[string]health.EndpointID{}, heard: map[string]time.Duration{},
	}
}

func (p *player) play(script string) error {
	for n, line := range strings.Split(script, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := p.line(line); err != nil {
			return fmt.Errorf("line %d: %q: %w", n+1, line, err)
		}
	}
	return nil
}

func (p *player) line(line string) error {
	words := strings.Fields(line)
	if at, ok := strings.CutPrefix(words[0], "t="); ok {
		t, err := time.ParseDuration(at)
		if err != nil || t < p.now || t > 100*time.Hour {
			return fmt.Errorf("bad time %s after %s", at, p.now)
		}
		p.runTo(t)
		words = words[1:]
	}
	fmt.Fprintf(&p.out, "t=%s %s\n", p.now, strings.Join(words, " "))
	if len(words) == 0 {
		return nil
	}
	if words[0] == "options" {
		return p.options(words[1:])
	}
	if len(words) < 2 {
		return fmt.Errorf("%s what?", words[0])
	}
	return p.do(words[0], words[1], words[2:])
}

func (p *player) do(verb, subject string, rest []string) error {
	a, now := p.aggregator, epoch.Add(p.now)
	switch verb {
	case "set":
		return p.set(subject, rest)
	case "assign":
		for _, c := range rest {
			a.Assign(now, p.id(subject), c)
		}
	case "unassign":
		for _, c := range rest {
			a.Unassign(now, p.id(subject), c)
		}
	case "remove":
		a.Remove(p.id(subject))
	case "show":
		p.show(subject)
	case "report":
		votes, err := p.votes(rest)
		if err != nil {
			return err
		}
		p.print(a.Report(now, subject, votes))
	case "stall":
		return p.stall(subject)
	case "distrust", "trust", "judge":
		words := map[string]aggregate.OperatorTrust{"distrust": aggregate.Distrusted, "trust": aggregate.Trusted}
		a.SetTrust(subject, words[verb], strings.Join(rest, " "))
	case "connected", "connected_stale", "lost", "hear", "silence":
		for _, c := range append([]string{subject}, rest...) {
			p.checker(verb, c)
		}
	default:
		return fmt.Errorf("no such verb")
	}
	p.print(a.Tick(now))
	return nil
}

func (p *player) stall(length string) error {
	d, err := time.ParseDuration(length)
	if err != nil || d < 0 || d > time.Hour {
		return fmt.Errorf("bad duration %s", length)
	}
	p.now += d
	for c := range p.heard {
		p.heard[c] = max(p.heard[c], p.now)
	}
	return nil
}

func (p *player) checker(verb, c string) {
	now := epoch.Add(p.now)
	switch verb {
	case "connected", "connected_stale": // the latter reports the code of the last answer for ever
		name, zone, _ := strings.Cut(c, "/")
		at := health.Locality{Zone: zone}
		if region, zone, both := strings.Cut(zone, "/"); both {
			at.Region, at.Zone = region, zone
		}
		k := health.Checker{ID: name, Locality: at}
		if verb == "connected" {
			k.Abilities = freshCodes
		}
		p.aggregator.Connected(now, k)
	case "lost":
		p.aggregator.Lost(c)
	case "hear":
		p.heard[c] = p.now
		p.runTo(p.now)
	case "silence":
		delete(p.heard, c)
	}
}

// runTo lets time pass, with its deadlines and its unchanged reports.
func (p *player) runTo(end time.Duration) {
	for {
		next, who := end+1, ""
		if at, ok := p.aggregator.NextDeadline(); ok {
			next = max(p.now, at.Sub(epoch))
		}
		for c, at := range p.heard {
			if at < next || at == next && (who == "" || c < who) {
				next, who = at, c
			}
		}
		if next > end {
			break
		}
		p.now = next
		if who != "" {
			p.heard[who] = next + time.Second
			p.print(p.aggregator.Report(epoch.Add(next), who, nil))
		} else {
			p.print(p.aggregator.Tick(epoch.Add(next)))
		}
	}
	p.now = end
}

func (p *player) id(name string) health.EndpointID {
	id, ok := p.ids[name]
	if !ok {
		id = health.EndpointID(len(p.names))
		p.ids[name] = id
		p.names = append(p.names, name)
	}
	return id
}

func (p *player) options(words []string) error {
	var o aggregate.Options
	d := &o.Doubt
	numbers := map[string]func(float64){
		"disagreements":      func(n float64) { d.Disagreements = int(n) },
		"share":              func(n float64) { d.Share = n },
		"path_disagreements": func(n float64) { d.PathDisagreements = int(n) },
		"path_share":         func(n float64) { d.PathShare = n },
		"release":            func(n float64) { d.Release = n },
	}
	var durations []string
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		if key == "zone_views" {
			o.ZoneViews = true
			continue
		}
		if numbers[key] == nil {
			durations = append(durations, word)
			continue
		}
		n, err := strconv.ParseFloat(value, 32)
		if err != nil || n > 1e6 {
			return fmt.Errorf("bad number %s", word)
		}
		numbers[key](n)
	}
	err := eachDuration(durations, map[string]*time.Duration{"staleness": &o.Staleness, "settle": &o.AwaitFor, "release_after": &d.ReleaseAfter})
	p.aggregator.Configure(o)
	return err
}

func (p *player) set(name string, words []string) error {
	e := aggregate.Endpoint{ID: p.id(name), Timing: usual}
	var last health.Verdict
	var durations []string
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		var err error
		switch key {
		case "last":
			last.Since = epoch.Add(-time.Hour)
			last.Status, err = status(value)
		case "zone":
			e.Zone.Zone = value
		case "rule":
			e.Rule, err = ruleOf(value, e.Rule.Unobserved)
		case "degraded":
			e.Rule.DegradedWhen, err = codesOf(value)
		case "passing":
			e.Rule.Passing, err = codesOf(value)
		case "warm_up":
			e.Rule.WarmUp, err = time.ParseDuration(value)
		case "staleness":
			e.Rule.Limits.Staleness, err = time.ParseDuration(value)
		case "disagreements":
			e.Rule.Limits.Doubt.Disagreements, err = strconv.Atoi(value)
		case "cluster":
			e.Cluster = value
		case "mass_hold":
			e.Rule.MassHold, err = time.ParseDuration(value)
		case "quorum_hold":
			e.Rule.QuorumHold, err = time.ParseDuration(value)
		case "votes":
			e.Rule.Votes, err = strconv.Atoi(value)
		case "half_life":
			e.Rule.Damping = aggregate.DefaultDamping
			e.Rule.Damping.HalfLife, err = strconv.Atoi(value)
		case "unobserved":
			e.Rule.Unobserved, err = named(value, "hold", "unknown", "unhealthy")
		case "threshold":
			var n uint64
			n, err = strconv.ParseUint(value, 10, 32)
			e.Timing.UnhealthyThreshold = uint32(n)
		case "healthy":
			var n uint64
			n, err = strconv.ParseUint(value, 10, 32)
			e.Timing.HealthyThreshold = uint32(n)
		default:
			durations = append(durations, word)
		}
		if err != nil {
			return err
		}
	}
	t := &e.Timing
	err := eachDuration(durations, map[string]*time.Duration{
		"interval": &t.Interval, "timeout": &t.Timeout, "jitter": &t.InitialJitter, "report": &t.ReportInterval,
	})
	if err == nil {
		p.aggregator.Set(e, last)
	}
	return err
}

func ruleOf(text string, u aggregate.Unobserved) (aggregate.Rule, error) {
	name, parameter, _ := strings.Cut(text, "/")
	kind, err := named(name, "majority", "any", "all", "at_least", "share", "zone_majority", "score")
	n, _ := strconv.ParseFloat(parameter, 64)
	return aggregate.Rule{Kind: aggregate.Kind(kind), AtLeast: int(n), Share: n, Unobserved: u}, err
}

func codesOf(text string) (c aggregate.Codes, err error) {
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return c, err
		}
		c.Add(n, n)
	}
	return c, nil
}

// named returns the position of a name among those there are.
func named(name string, names ...string) (aggregate.Unobserved, error) {
	i := slices.Index(names, name)
	if i < 0 {
		return 0, fmt.Errorf("no %q among %v", name, names)
	}
	return aggregate.Unobserved(i), nil
}

func eachDuration(words []string, into map[string]*time.Duration) error {
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		d, err := time.ParseDuration(value)
		if err != nil || into[key] == nil || d < 0 {
			return fmt.Errorf("bad parameter %s", word)
		}
		*into[key] = d
	}
	return nil
}

func status(name string) (health.Status, error) {
	for s := health.Unknown; s.Valid(); s++ {
		if s.String() == name {
			return s, nil
		}
	}
	return 0, fmt.Errorf("no status %q", name)
}

func (p *player) votes(words []string) ([]health.Vote, error) {
	var votes []health.Vote
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		value, code, _ := strings.Cut(value, "/")
		s, err := status(value)
		if err != nil {
			return nil, err
		}
		n, _ := strconv.ParseUint(code, 10, 16)
		votes = append(votes, health.Vote{Endpoint: p.id(name), Status: s, HTTPStatusCode: uint16(n)})
	}
	return votes, nil
}

func (p *player) print(effects aggregate.Effects) {
	for _, s := range effects.Doubts {
		word := "believed again"
		if s.Doubted {
			word = "doubted"
		}
		fmt.Fprintf(&p.out, "  t=%s %s%s is %s: %s\n", p.now, s.Checker, strings.Trim(s.From+" to "+s.To, " to"), word, s.Reason)
	}
	for _, b := range effects.Blindness {
		word := "sees again"
		if b.Blind {
			word = "is blind"
		}
		fmt.Fprintf(&p.out, "  t=%s %s %s: %s\n", p.now, b.Checker, word, b.Reason)
	}
	for _, alarm := range effects.MassFailures {
		word := "raised"
		if alarm.Over {
			word = "over"
		}
		fmt.Fprintf(&p.out, "  t=%s alarm of %q %s: %s\n", p.now, alarm.Cluster, word, alarm.Reason)
	}
	for _, v := range effects.ZoneViews {
		word := "is " + v.Status.String()
		if v.Over {
			word = "is as the verdict"
		}
		fmt.Fprintf(&p.out, "  t=%s in zone %s, %s %s\n", p.now, strings.TrimPrefix(v.Zone.Region+"/"+v.Zone.Zone, "/"), p.names[v.Endpoint], word)
	}
	changes := effects.Changes
	slices.SortStableFunc(changes, func(x, y aggregate.Change) int { return cmp.Compare(x.Endpoint, y.Endpoint) })
	for _, c := range changes {
		fmt.Fprintf(&p.out, "  t=%s %s %s -> %s: %s\n", p.now, p.names[c.Endpoint], c.From, c.To, c.Reason)
		p.observations(c.Observations)
		if p.watch != nil {
			p.watch(c)
		}
	}
}

func (p *player) show(name string) {
	v := p.aggregator.Verdict(p.id(name))
	since := "never"
	if !v.Since.IsZero() {
		since = v.Since.Sub(epoch).String()
	}
	fmt.Fprintf(&p.out, "  %s since %s: %s\n", v.Status, since, v.Reason)
	if len(v.Zones) > 1 {
		for _, z := range v.Zones {
			fmt.Fprintf(&p.out, "    zone %q sees %s, %d up, %d down\n", z.Zone, z.Status, z.Up, z.Down)
		}
	}
	p.observations(v.Observations)
}

func (p *player) observations(list []health.Observation) {
	for _, o := range list {
		fmt.Fprintf(&p.out, "    %s %s", o.Checker, o.Status)
		if o.HTTPStatusCode != 0 {
			fmt.Fprintf(&p.out, " %d", o.HTTPStatusCode)
		}
		if o.Time.IsZero() {
			p.out.WriteString(" never heard")
		} else {
			fmt.Fprintf(&p.out, " at %s", o.Time.Sub(epoch))
		}
		if o.Disbelieved != "" {
			fmt.Fprintf(&p.out, " (not believed: %s)", o.Disbelieved)
		}
		p.out.WriteString("\n")
	}
}

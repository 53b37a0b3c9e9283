package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"hdsd/health"
	"hdsd/internal/demo/envoy"
)

// Options say how to run the demonstration.
type Options struct {
	Out     io.Writer
	Once    bool   // one scripted round instead of rounds until the context ends
	NoEnvoy bool   // the built-in checker and subscriber even if Envoy is available
	Cache   string // folder for the downloaded Envoy
	HDSD    string // path of the hdsd binary

	Replicas int    // how many hdsd share a log in etcd; 0: one, alone
	Etcd     string // path of the etcd binary that replicas need
}

// patience bounds any one step of the demonstration.
const patience = 30 * time.Second

// pause is the time between the scenes of an endless demonstration.
const pause = 3 * time.Second

// Run shows hdsd at work. It returns an error if a step fails, and nil if the round was
// good or the context ended.
func Run(ctx context.Context, o Options) error {
	narrator, err := newNarrator(o.Out)
	if err != nil {
		return err
	}
	s := &stage{options: o, narrator: narrator}
	defer s.clear()
	err = s.perform(ctx)
	if ctx.Err() != nil && !o.Once {
		s.say("\nInterrupted: stopping everything.")
		return nil
	}
	if err != nil {
		for _, c := range s.coordinators {
			if c.process != nil {
				fmt.Fprintf(o.Out, "\n%s said:\n%s\n", c.id, c.process.Logs())
			}
		}
	}
	return err
}

func (s *stage) perform(ctx context.Context) error {
	script := alone(s)
	if s.options.Replicas > 0 {
		script = (&ensemble{stage: s}).script()
	}
	if err := s.prepare(ctx, &script); err != nil {
		return err
	}
	s.printCommands(script.commands)
	for s.round = 1; ; s.round++ {
		for i, fails := range script.failures {
			victim := s.upstreams[(s.round*len(failures)+i)%len(s.upstreams)]
			if err := s.play(ctx, func(ctx context.Context) error { return s.fail(ctx, fails, victim) }); err != nil {
				return err
			}
		}
		for _, promise := range script.promises {
			if err := s.pause(ctx); err != nil {
				return err
			}
			if err := s.play(ctx, promise); err != nil {
				return err
			}
		}
		if s.options.Once {
			s.say("\nThe round is over: every failure was seen, published, routed around and recorded, and every promise was kept.")
			return nil
		}
	}
}

// script is what a demonstration has beside the upstreams, and what it shows.
type script struct {
	title    string
	starts   []func(context.Context) error                 // of coordinators
	fleet    func(ctx context.Context, envoy string) error // starts checkers and data planes
	failures []failure
	promises []func(context.Context) error
	commands []string // that are worth a look
}

// alone is the script with one coordinator.
func alone(s *stage) script {
	return script{
		title:    "a coordinator, checkers in zones a, b and c, four upstreams, a data plane",
		starts:   []func(context.Context) error{s.startCoordinator},
		fleet:    s.startFleet,
		failures: failures,
		promises: []func(context.Context) error{s.cutOff, s.kill, s.drain, s.setAside},
		commands: []string{"status", "endpoints", "history --since 5m", "checkers"},
	}
}

// failure is a way in which an upstream fails.
type failure struct {
	title     string
	behaviour behaviour
}

var failures = []failure{
	{"starts answering 503", unavailable},
	{"hangs: it takes requests and never answers", hanging},
	{"refuses connections", refusing},
}

// fail makes an upstream fail and recover, and prints the effects.
func (s *stage) fail(ctx context.Context, fails failure, victim *upstream) error {
	if err := s.pause(ctx); err != nil {
		return err
	}
	s.scene("%s %s", victim.address, fails.title)
	start := time.Now()
	votes, probes := s.votes(ctx, victim.address, false), victim.requests.Load()
	if err := victim.set(fails.behaviour); err != nil {
		return err
	}
	if fails.behaviour != refusing {
		if !await(ctx, func() bool { return victim.requests.Load() > probes }) {
			return failed(ctx, "no checker probed %s", victim.address)
		}
		s.event("probe", "the first checker has probed it")
	}
	if err := s.track(ctx, victim.address, start, votes, false); err != nil {
		return err
	}
	if err := s.pause(ctx); err != nil {
		return err
	}
	s.scene("%s recovers", victim.address)
	start, votes = time.Now(), s.votes(ctx, victim.address, true)
	if err := victim.set(healthy); err != nil {
		return err
	}
	return s.track(ctx, victim.address, start, votes, true)
}

// pause waits, so that people can read.
func (s *stage) pause(ctx context.Context) error {
	if s.options.Once {
		return ctx.Err()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(pause):
		return nil
	}
}

// track prints each step of a change as it happens: the first vote, verdict, EDS, history. votes
// is the number of votes that agreed with the new health before.
func (s *stage) track(ctx context.Context, address string, start time.Time, votes int, up bool) error {
	if !await(ctx, func() bool { return s.votes(ctx, address, up) > votes }) {
		return failed(ctx, "no checker reported a change of %s", address)
	}
	s.event("votes", "first: %s", s.firstVotes(ctx, address, up))
	if !await(ctx, func() bool { return isUp(s.endpoint(ctx, address)) == up && !unknown(s.endpoint(ctx, address)) }) {
		return failed(ctx, "no verdict on %s", address)
	}
	verdict := s.endpoint(ctx, address)
	s.event("verdict", "%s: %s", verdict.GetHealth(), verdict.GetReason())
	if !await(ctx, func() bool { return (s.plane.published(address) == health.Healthy.String()) == up }) {
		return failed(ctx, "the data plane did not get the change of %s; it has it as %q", address, s.plane.published(address))
	}
	s.event("EDS", "%s now has it as %s", s.plane.name(), s.plane.published(address))
	s.showTraffic()
	var row string
	if !await(ctx, func() bool { row = s.history(ctx, address, start); return row != "" }) {
		return failed(ctx, "the change of %s is not in the history", address)
	}
	s.event("history", "%s", row)
	return nil
}

// failed returns the error of a failed step, or that of the context if it has ended.
func failed(ctx context.Context, format string, args ...any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return errors.New(fmt.Sprintf(format, args...) + fmt.Sprintf(" within %v", patience))
}

// await polls a condition until it is true. It returns false when patience or the
// context ends first.
func await(ctx context.Context, condition func() bool) bool {
	return envoy.Await(ctx, patience, condition)
}

package aggregate_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hdsd/aggregate"
)

// FuzzScenario plays any script. As long as no other rule is set, nothing may go down
// or up without a majority of the votes that count, and every change has a reason.
func FuzzScenario(f *testing.F) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, path := range paths {
		script, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(script))
	}
	f.Fuzz(func(t *testing.T, script string) {
		if len(script) > 10_000 {
			t.Skip("too long")
		}
		p := newPlayer()
		usualRule := !strings.Contains(script, "rule=") && !strings.Contains(script, "unobserved=")
		p.watch = func(c aggregate.Change) {
			up, down := 0, 0
			for _, o := range c.Observations {
				switch {
				case o.Disbelieved != "":
				case o.Status.Up():
					up++
				case o.Status.Down():
					down++
				}
			}
			checkCarried := c.To.Down() && down > up || c.To.Up() && up > down
			if usualRule && !checkCarried || c.From == c.To || c.Reason == "" {
				t.Fatalf("%+v with %d up and %d down", c, up, down)
			}
		}
		_ = p.play(script) // a script that is none ends early
		for name, id := range p.ids {
			if v := p.aggregator.Verdict(id); v.Reason == "" && (len(v.Observations) > 0 || !v.Since.IsZero()) {
				t.Fatalf("%s has no reason: %+v", name, v)
			}
		}
	})
}

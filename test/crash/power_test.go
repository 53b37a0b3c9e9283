package crash

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"time"

	"hdsd/health"
	"hdsd/log"
	"hdsd/store"
)

// powerVariable names the folder of the child that loses its power.
const powerVariable = "HDSD_POWER_FOLDER"

// powered appends without end, and prints how many transitions queries have shown to it.
// It lives with a disk that fails.
func powered(dir string) error {
	s, err := store.Open(context.Background(), dir, store.Options{})
	if err != nil {
		return err
	}
	random, out := rand.New(rand.NewPCG(1, 0)), json.NewEncoder(os.Stdout)
	q, seen := store.Query{Limit: 10_000, Start: time.Unix(1_700_000_000, 0)}, 0
	for next := 0; ; {
		some := make([]health.Transition, 1+random.IntN(50))
		for i := range some {
			some[i] = transition(next)
			next++
		}
		s.Apply(&log.Entry{Transitions: some, Plan: map[string][]health.Hash{"checker-1": {health.Hash(next)}}, Trials: trialsAt(next)})
		for s.Durable(context.Background()) != nil {
			continue // each asks for one more attempt
		}
		page, _, err := s.Transitions(q)
		if err != nil || len(page) == 0 {
			return err
		}
		q.Start = page[len(page)-1].Time.Add(1)
		seen += len(page)
		if err := out.Encode(seen); err != nil {
			return err
		}
	}
}

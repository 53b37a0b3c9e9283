package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"hdsd/health"
	"hdsd/store"
)

// registersVariable has the child write and read a few endpoints at once.
const registersVariable = "HDSD_CRASH_REGISTERS"

const (
	registerCount = 4
	writers       = 4
	readers       = 3
)

// step is the beginning or the end of an operation of the child.
type step struct {
	ID, Client int
	End        bool
	Time       int64 // nanoseconds since 1970
	Endpoint   int
	Write      bool
	Value      int // written, or read; 0: never written
}

// journal prints steps.
type journal struct {
	mu     sync.Mutex
	out    *json.Encoder
	number int
}

// begin prints the beginning of an operation, and returns what prints its end.
func (j *journal) begin(s step) (end func(value int) error, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s.ID, s.Time = j.number, time.Now().UnixNano()
	j.number++
	return func(value int) error {
		j.mu.Lock()
		defer j.mu.Unlock()
		s.End, s.Value, s.Time = true, value, time.Now().UnixNano()
		return j.out.Encode(s)
	}, j.out.Encode(s)
}

func endpointOf(register int) health.Endpoint {
	return health.Endpoint{Cluster: "web", Address: fmt.Sprintf("10.0.0.%d:80", register)}
}

// registers writes and reads the health of a few endpoints from several goroutines. A
// write ends when it is on disk.
func registers(dir string, first int) error {
	s, err := store.Open(context.Background(), dir, store.Options{})
	if err != nil {
		return err
	}
	j := &journal{out: json.NewEncoder(os.Stdout), number: first}
	failed := make(chan error)
	for client := range writers + readers {
		random := rand.New(rand.NewPCG(uint64(first), uint64(client)))
		go func() {
			for {
				step := step{Client: client, Endpoint: random.IntN(registerCount), Write: client < writers}
				if step.Write {
					step.Value = first*1000 + client*1_000_000_000 + random.IntN(1_000_000) + 1
				}
				if err := step.do(s, j); err != nil {
					failed <- err
				}
			}
		}()
	}
	return <-failed
}

// do carries out one operation.
func (s step) do(in *store.Store, j *journal) error {
	end, err := j.begin(s)
	if err != nil {
		return err
	}
	e := endpointOf(s.Endpoint)
	if s.Write {
		in.Append([]health.Transition{{Time: time.Now(), Endpoint: e, To: health.Healthy, Reason: strconv.Itoa(s.Value)}})
		if err := in.Flush(context.Background()); err != nil {
			return err
		}
		return end(s.Value)
	}
	held, _, err := in.Latest([]health.Endpoint{e})
	if err != nil {
		return err
	}
	value := 0
	if held[0] != nil {
		if value, err = strconv.Atoi(held[0].Reason); err != nil {
			return err
		}
	}
	return end(value)
}

// register is the model of one endpoint: what is read is what was written last.
var register = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		parts := make([][]porcupine.Operation, registerCount)
		for _, o := range history {
			n := o.Input.(step).Endpoint
			parts[n] = append(parts[n], o)
		}
		return parts
	},
	Init: func() any { return 0 },
	Step: func(state, input, output any) (bool, any) {
		if in := input.(step); in.Write {
			return true, in.Value
		}
		return output.(int) == state.(int), state
	},
}

// TestTheHistoryIsLinearizable has writers and readers at work on a few endpoints, and
// kills them again and again. Each read gives what was written last, whoever wrote it and
// however often the process died; a write that nobody acknowledged may be there or not.
func TestTheHistoryIsLinearizable(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	dir, next := t.TempDir(), 0
	var history []porcupine.Operation
	for range 8 {
		open := map[int]step{}
		kill(t, registersVariable, dir, next, 200+random.IntN(400), time.Duration(random.IntN(20_000))*time.Microsecond, func(line []byte) {
			s := decoded[step](t, line)
			next = max(next, s.ID+1)
			if !s.End {
				open[s.ID] = s
				return
			}
			history = append(history, porcupine.Operation{ClientId: s.ID, Input: open[s.ID], Call: open[s.ID].Time, Output: s.Value, Return: s.Time})
			delete(open, s.ID)
		})
		for _, s := range open {
			if s.Write { // it may take effect, now or never
				history = append(history, porcupine.Operation{ClientId: s.ID, Input: s, Call: s.Time, Output: 0, Return: math.MaxInt64})
			}
		}
	}
	reads := 0
	for _, o := range history {
		if !o.Input.(step).Write && o.Output.(int) != 0 {
			reads++
		}
	}
	t.Logf("%d operations, %d of them reads of something", len(history), reads)
	if reads < 100 {
		t.Error("that is too few to show anything")
	}
	if result := porcupine.CheckOperationsTimeout(register, history, time.Minute); result != porcupine.Ok {
		t.Errorf("the history is not linearizable: %v", result)
	}
}

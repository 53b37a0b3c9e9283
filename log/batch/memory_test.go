package batch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sort"
	"testing"

	"hdsd/health"
	"hdsd/internal/packed"
	"hdsd/log"
	"hdsd/log/sample"
)

// memoryOf returns the memory that Encode counts for entries.
func memoryOf(entries []*log.Entry) int64 {
	return int64(sort.Search(1<<30, func(limit int) bool {
		_, err := encodeWithin(entries, MaxBytes, int64(limit))
		return err == nil
	}))
}

func TestEncodeAndDecodeCountTheSameMemory(t *testing.T) {
	for seed := range uint64(20) {
		entries := sample.Entries(rand.New(rand.NewPCG(seed, 1)), 10)
		b, memory := encode(t, entries), memoryOf(entries)
		if _, err := decodeWithin(b, memory); err != nil {
			t.Errorf("seed %d: with all the memory: %v", seed, err)
		}
		if _, err := decodeWithin(b, memory-1); !errors.Is(err, ErrDamaged) {
			t.Errorf("seed %d: with less: %v", seed, err)
		}
	}
}

// TestTheMemoryOfAnEntryIsCounted: all that its parts really take.
func TestTheMemoryOfAnEntryIsCounted(t *testing.T) {
	const count = 1000
	frozen, large := log.Freeze{Held: map[health.Hash]health.Status{}}, &log.Entry{}
	large.Voted, large.Plan = map[health.Hash]*health.Verdict{}, map[string][]health.Hash{}
	large.Established, large.Trials, large.Penalties = map[string]*log.Established{}, map[string]*log.Trials{}, map[health.Hash]*log.Penalty{}
	for i := range count {
		name, hash := fmt.Sprint("name-", i), health.Hash(i)
		frozen.Held[hash], large.Voted[hash], large.Penalties[hash] = health.Healthy, new(health.Verdict), new(log.Penalty)
		large.Plan[name], large.Established[name] = []health.Hash{hash}, new(log.Established)
		large.Trials[name] = &log.Trials{Proven: make([]log.Proof, 1), Blamed: make([]uint64, 1), Losses: make([]log.Loss, 1)}
		large.Clusters = append(large.Clusters, name)
	}
	replaced := make([]log.OverrideChange, count)
	for i := range replaced {
		replaced[i].Replaced = &log.Override{}
	}
	mass := massFailure(count)
	for i := range mass.Transitions {
		mass.Transitions[i].Moved = new(health.Locality)
	}
	for name, entry := range map[string]*log.Entry{
		"a freeze":    {Held: &frozen},
		"overrides":   {Overrides: make([]log.OverrideChange, count)},
		"replaced":    {Overrides: replaced},
		"events":      {Events: make([]log.Event, count)},
		"transitions": mass,
		"names":       {Clusters: large.Clusters},
		"hashes":      {Unvoted: make([]health.Hash, count)},
		"votes":       {Voted: large.Voted},
		"a plan":      {Plan: large.Plan},
		"established": {Established: large.Established},
		"trials":      {Trials: large.Trials},
		"penalties":   {Penalties: large.Penalties},
		"entries":     nil,
	} {
		entries := []*log.Entry{entry}
		if entry == nil {
			for entries = nil; len(entries) < count; {
				entries = append(entries, &log.Entry{Operator: &log.Operator{}})
			}
		}
		memory, b := memoryOf(entries), encode(t, entries)
		content, err := decompressor.DecodeAll(b[1:], nil)
		if err != nil {
			t.Fatal(err)
		}
		before := heap()
		got, err := Decode(b)
		if taken := heap() - before; err != nil || taken > memory+int64(len(content)) {
			t.Errorf("%s: %d bytes are counted, and %d taken (%v)", name, memory, taken, err)
		}
		runtime.KeepAlive(got)
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestMemoryIsLimitedBeforeItIsTaken, for batches that announce many items and take little room in etcd.
func TestMemoryIsLimitedBeforeItIsTaken(t *testing.T) {
	const size, memory = 1 << 20, 1 << 20
	zeros := make([]byte, size)
	transitions := binary.AppendUvarint(binary.AppendUvarint(nil, size/11), size/5)
	for name, content := range map[string][]byte{
		"entries":     zeros,
		"texts":       append(binary.AppendUvarint(nil, size), zeros...),
		"transitions": append(packed.AppendText([]byte{0, 0, 7}, string(transitions)+string(zeros)), endTag),
		"events":      append(packed.AppendText([]byte{0, 0, eventsTag}, string(binary.AppendUvarint(nil, size/12))+string(zeros)), endTag),
	} {
		b := compressor.EncodeAll(content, []byte{version})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := decodeWithin(b, memory)
		runtime.ReadMemStats(&after)
		if taken := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, ErrDamaged) || taken > 3*(size+memory) {
			t.Errorf("%s: %d bytes take %d, and %d are allowed beside the content (%v)", name, len(b), taken, memory, err)
		}
	}
}

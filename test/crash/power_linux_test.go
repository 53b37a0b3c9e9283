package crash

import (
	"bufio"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hdsd/store"
	"hdsd/test/disk"
)

// record runs the child that appends until it has printed some lines, with a disk that does
// as fault says from the second line on, and returns what it did.
func record(t *testing.T, folder string, lines int, fault func(disk.Op) (time.Duration, error)) []disk.Op {
	t.Helper()
	return recordOf(t, powerVariable+"="+filepath.Join(folder, "deep", "data"), folder, lines, fault)
}

// recordOf is record of the child that a variable stands for.
func recordOf(t *testing.T, variable, folder string, lines int, fault func(disk.Op) (time.Duration, error)) []disk.Op {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), variable)
	command.Stderr = os.Stderr
	pipe, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	d := disk.Start(t, command, folder)
	in := bufio.NewScanner(pipe)
	for n := 0; n < lines && in.Scan(); n++ {
		if n == 1 {
			d.SetFault(fault)
		}
	}
	_ = command.Process.Kill()
	if err := command.Wait(); err == nil || command.ProcessState.Exited() {
		t.Fatalf("the child ended by itself: %v", err)
	}
	return d.Ops()
}

// losses is how many losses of power each test tries: SOAK asks for more.
func losses() int {
	if os.Getenv("SOAK") != "" {
		return 600
	}
	return 60
}

// lose loses the power at random moments of what a child did, and looks at what is left:
// the database opens, and inspect finds it whole, with all that was shown.
func lose(t *testing.T, folder string, ops []disk.Op, inspect func(t *testing.T, dir string, shown int) int) {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	moments := map[int]int{} // how many losses, by how many operations were begun
	for range losses() {
		moments[random.IntN(len(ops)+1)]++
	}
	image, shown, tried := disk.NewImage(folder), 0, 0
	for n := 0; ; n++ {
		for range moments[n] {
			dir := t.TempDir()
			if err := image.Lose(dir, random); err != nil {
				t.Fatal(err)
			}
			inspect(t, filepath.Join(dir, "deep", "data"), shown)
			if t.Failed() {
				t.Fatalf("after %d of %d operations, seed %d", n, len(ops), seed)
			}
			tried++
		}
		if n == len(ops) {
			break
		}
		if image.Apply(&ops[n]); ops[n].Kind == disk.Print {
			var err error
			if shown, err = strconv.Atoi(string(ops[n].Data[:len(ops[n].Data)-1])); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d losses of power among %d operations, %d shown, seed %d", tried, len(ops), shown, seed)
}

// TestPowerLoss: whatever order the disk has written in, as far as syncs allow it.
func TestPowerLoss(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	lose(t, folder, record(t, folder, 60, nil), inspect)
}

// TestPowerLossOfAFollower: the database of a replica has exactly the entries up to its cursor. The disk
// fails at times, too.
func TestPowerLossOfAFollower(t *testing.T) {
	t.Parallel()
	folder, random := t.TempDir(), rand.New(rand.NewPCG(5, 0))
	ops := recordOf(t, followerVariable+"="+filepath.Join(folder, "deep", "data"), folder, 60, func(op disk.Op) (time.Duration, error) {
		if op.Kind == disk.Sync && random.IntN(10) == 0 {
			return 0, unix.EIO
		}
		return 0, nil
	})
	lose(t, folder, ops, inspectFollower)
}

// TestPowerLossAfterFailedSyncs: the kernel forgets what it could not write, and says so
// only once.
func TestPowerLossAfterFailedSyncs(t *testing.T) {
	t.Parallel()
	folder, random := t.TempDir(), rand.New(rand.NewPCG(2, 0))
	failed := 0
	ops := record(t, folder, 60, func(op disk.Op) (time.Duration, error) {
		if op.Kind == disk.Sync && random.IntN(3) == 0 {
			failed++
			return 0, unix.EIO
		}
		return 0, nil
	})
	if failed < 10 {
		t.Fatalf("only %d syncs failed", failed)
	}
	lose(t, folder, ops, inspect)
}

// TestAFullDiskInBetween: writes fail for a while, at random.
func TestAFullDiskInBetween(t *testing.T) {
	t.Parallel()
	folder, random := t.TempDir(), rand.New(rand.NewPCG(3, 0))
	full := 0 // writes that still fail
	ops := record(t, folder, 60, func(op disk.Op) (time.Duration, error) {
		if random.IntN(50) == 0 {
			full = 5
		}
		if op.Kind != disk.Write || full == 0 {
			return 0, nil
		}
		full--
		return 0, unix.ENOSPC
	})
	lose(t, folder, ops, inspect)
}

// TestPowerLossWhileRecordingEvents: the disk fails at times, too.
func TestPowerLossWhileRecordingEvents(t *testing.T) {
	t.Parallel()
	folder, random := t.TempDir(), rand.New(rand.NewPCG(4, 0))
	ops := recordOf(t, diaristVariable+"="+filepath.Join(folder, "deep", "data"), folder, 60, func(op disk.Op) (time.Duration, error) {
		if op.Kind == disk.Sync && random.IntN(10) == 0 {
			return 0, unix.EIO
		}
		return 0, nil
	})
	lose(t, folder, ops, inspectEvents)
}

// TestPowerLossWhileRestoring: once a restore has ended, there is always a history, whole,
// and it is the last that was said to be restored or the next. So are those that were kept.
func TestPowerLossWhileRestoring(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	for name, count := range histories {
		writeCopy(t, filepath.Join(top, name), count)
	}
	folder := filepath.Join(top, "data")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	ops := recordOf(t, restorerVariable+"="+top, folder, 6, nil)
	random, image, last := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0)), disk.NewImage(folder), 0
	tried, between := 0, 0
	for n := range ops {
		image.Apply(&ops[n])
		if ops[n].Kind == disk.Print {
			last = decoded[int](t, ops[n].Data)
		}
		if last == 0 || ops[n].Kind == disk.Write && random.IntN(len(ops)) > losses() {
			continue // most of what happens are writes
		}
		dir := t.TempDir()
		if err := image.Lose(dir, random); err != nil {
			t.Fatal(err)
		}
		s, err := store.Open(t.Context(), dir, store.Options{OnError: func(err error) { t.Error(err) }})
		if err != nil {
			t.Fatalf("after %d of %d operations: %v", n, len(ops), err)
		}
		there := len(all(t, s))
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if other := histories["a.db"] + histories["b.db"] - last; there == other {
			between++
		} else if there != last {
			t.Errorf("after %d of %d operations: %d were restored, %d are there", n, len(ops), last, there)
		}
		wantKept(t, dir)
		tried++
	}
	t.Logf("%d losses of power among %d operations; %d times, the next was in place before that was said", tried, len(ops), between)
	if tried < 10 {
		t.Error("too few")
	}
}

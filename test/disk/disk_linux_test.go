package disk

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const childVariable = "HDSD_DISK_CHILD"

func TestMain(m *testing.M) {
	Main()
	if folder := os.Getenv(childVariable); folder != "" {
		if err := child(folder); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child writes twice to a file, with a sync in between, and renames it.
func child(folder string) error {
	path := filepath.Join(folder, "inner", "file")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, first := file.WriteAt([]byte("first"), 0)
	synced := file.Sync()
	_, second := file.WriteAt([]byte("second"), 5000)
	err = errors.Join(first, synced, second, os.Rename(path, path+".new"))
	fmt.Println("done")
	return err
}

// trace runs the child, and returns what it did and what it printed.
func trace(t *testing.T, folder string, fault func(Op) (time.Duration, error)) ([]Op, string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), childVariable+"="+folder)
	pipe, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	d := Start(t, command, folder)
	d.SetFault(fault)
	text, printed := bufio.NewScanner(pipe), ""
	for text.Scan() {
		printed += text.Text() + "\n"
	}
	_ = command.Wait()
	return d.Ops(), printed
}

func TestARecordHasEverythingInOrder(t *testing.T) {
	folder := t.TempDir()
	ops, printed := trace(t, folder, nil)
	var kinds []Kind
	for _, op := range ops {
		kinds = append(kinds, op.Kind)
	}
	if want := []Kind{Mkdir, Create, Write, Sync, Write, Rename, Print}; !slices.Equal(kinds, want) || printed != "done\n" {
		t.Fatalf("kinds %v, want %v; it printed %q", kinds, want, printed)
	}
	if string(ops[2].Data) != "first" || ops[4].Offset != 5000 || ops[5].Name != "file.new" || ops[5].FromName != "file" || ops[1].File != ops[5].File {
		t.Errorf("%+v", ops)
	}
}

func TestFaultsReachTheProcess(t *testing.T) {
	folder := t.TempDir()
	_, printed := trace(t, folder, func(op Op) (time.Duration, error) {
		if op.Kind == Sync {
			return time.Millisecond, unix.EIO
		}
		return 0, nil
	})
	if want := "input/output error"; len(printed) == 0 || !strings.Contains(printed, want) {
		t.Errorf("it printed %q, want %q", printed, want)
	}
}

// lost returns all contents that losses of power leave behind the first n operations.
func lost(t *testing.T, folder string, ops []Op) map[string]bool {
	t.Helper()
	image := NewImage(folder)
	for i := range ops {
		image.Apply(&ops[i])
	}
	found := map[string]bool{}
	for seed := range uint64(200) {
		dir := t.TempDir()
		if err := image.Lose(dir, rand.New(rand.NewPCG(seed, 0))); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"file", "file.new"} {
			if content, err := os.ReadFile(filepath.Join(dir, "inner", name)); err == nil {
				found[fmt.Sprintf("%s %d %.5s", name, len(content), content)] = true
			}
		}
		if _, err := os.Stat(filepath.Join(dir, "inner")); err != nil {
			found["no folder"] = true
		}
	}
	return found
}

// TestWhatALossOfPowerLeaves: what was synced is there, names aside; the rest may be, or a
// part of it.
func TestWhatALossOfPowerLeaves(t *testing.T) {
	folder := t.TempDir()
	ops, _ := trace(t, folder, nil)
	got := lost(t, folder, ops)
	for _, want := range []string{"no folder", "file 5 first", "file 5006 first", "file.new 5 first", "file.new 5006 first"} {
		if !got[want] {
			t.Errorf("never left: %s", want)
		}
		delete(got, want)
	}
	if len(got) > 0 {
		t.Errorf("left against the sync: %v", got)
	}
	for i := range ops {
		if ops[i].Kind == Sync {
			ops[i].Err = unix.EIO
		}
	}
	later := append(slices.Clip(ops), Op{Kind: Sync, File: ops[1].File})
	if got := lost(t, folder, later); !got["file 5006 \x00\x00\x00\x00\x00"] || got["file 5 first"] {
		t.Errorf("a later sync makes durable what an earlier one did not, or not what came since: %v", got)
	}
}

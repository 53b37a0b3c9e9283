package hostile

import (
	"bufio"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hdsd/store"
	"hdsd/test/disk"
	"hdsd/test/fleet"
)

// TestPowerLossDuringBackup: hdsd backup replaces a copy by a newer one, and the power goes at
// some moment. There is always a whole copy, and once the command has said so, the newer one.
func TestPowerLossDuringBackup(t *testing.T) {
	t.Parallel()
	s, folder := newSite(t), t.TempDir()
	path := filepath.Join(folder, "copy.db")
	script := `for n in 1 2 3; do "$0" backup "$2" --server "$1"; done`
	command := exec.CommandContext(t.Context(), "/bin/sh", "-c", script, fleet.Plain(t), s.GRPC, path)
	command.Stderr = os.Stderr
	said, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	d := disk.Start(t, command, folder)
	for lines := bufio.NewScanner(said); lines.Scan(); {
	}
	if err := command.Wait(); err != nil {
		t.Fatal(err)
	}
	ops, seed := d.Ops(), uint64(time.Now().UnixNano())
	random, image, made, tried := rand.New(rand.NewPCG(seed, 0)), disk.NewImage(folder), 0, 0
	for n := range ops {
		image.Apply(&ops[n])
		if ops[n].Kind == disk.Print {
			made++
		}
		if ops[n].Kind == disk.Write && random.IntN(5) > 0 {
			continue // most of what happens are writes
		}
		left := t.TempDir()
		if err := image.Lose(left, random); err != nil {
			t.Fatal(err)
		}
		about, err := store.Examine(t.Context(), filepath.Join(left, "copy.db"))
		switch {
		case errors.Is(err, fs.ErrNotExist) && made == 0:
		case err != nil || about.Rows != nil:
			t.Errorf("after %d of %d operations and %d copies, seed %d: %v, %v", n+1, len(ops), made, seed, err, about.Rows)
		}
		tried++
	}
	t.Logf("%d losses of power among %d operations", tried, len(ops))
	if made != 3 || tried < 10 {
		t.Errorf("%d copies, %d losses of power", made, tried)
	}
}

// TestBackupToADiskInTrouble: the copy that was there stays, the command says what is wrong, and
// leaves nothing behind.
func TestBackupToADiskInTrouble(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for name, fault := range map[string]func(disk.Op) (time.Duration, error){
		"full":        failing(disk.Write, unix.ENOSPC),
		"syncs fail":  failing(disk.Sync, unix.EIO),
		"no new name": failing(disk.Rename, unix.EROFS),
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			path := filepath.Join(folder, "copy.db")
			if text, err := exec.CommandContext(t.Context(), fleet.Plain(t), "backup", path, "--server", s.GRPC).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			command := exec.CommandContext(t.Context(), fleet.Plain(t), "backup", path, "--server", s.GRPC)
			says, err := command.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			disk.Start(t, command, folder).SetFault(fault)
			text := ""
			for lines := bufio.NewScanner(says); lines.Scan(); {
				text += lines.Text() + "\n"
			}
			if err := command.Wait(); err == nil {
				t.Errorf("it succeeds: %s", text)
			}
			t.Log(text)
			after, err := os.ReadFile(path)
			if err != nil || string(after) != string(before) {
				t.Errorf("the copy that was there is gone or changed: %v", err)
			}
			if left, err := os.ReadDir(folder); err != nil || len(left) != 1 {
				t.Errorf("%v are left, %v", left, err)
			}
		})
	}
}

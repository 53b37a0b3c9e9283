package debian

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// Libraries is where, in the folder of Unpacked, the libraries of further packages are.
const Libraries = "usr/lib/x86_64-linux-gnu"

// Unpacked returns the folder of Debian packages, unpacked, with the libraries of a program of
// the first one, so that this finds its files if it has the folder as its root. It unpacks the
// packages into .cache, where they are not there yet; that takes apt-get and dpkg-deb.
func Unpacked(t testing.TB, program string, packs ...string) string {
	t.Helper()
	pack := packs[0]
	cache, err := filepath.Abs(filepath.Join("..", "..", ".cache"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		t.Fatal(err)
	}
	lock, err := os.OpenFile(filepath.Join(cache, "debian-"+pack+".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(cache, "debian-"+pack)
	if _, err := os.Stat(folder); err != nil {
		if err := unpack(t.Context(), packs, program, folder); err != nil {
			t.Fatalf("%s of Debian's package %s is needed, which apt-get can download: %v", program, pack, err)
		}
	}
	return folder
}

// library is a line of ldd about a file.
var library = regexp.MustCompile(`(?m)(/\S+) \(0x`)

// unpack downloads packages and unpacks them. The folder is there when all of it is.
func unpack(ctx context.Context, packs []string, program, folder string) error {
	scratch, err := os.MkdirTemp(filepath.Dir(folder), "unpack-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	run := func(name string, arguments ...string) error {
		command := exec.CommandContext(ctx, name, arguments...)
		command.Dir = scratch
		if out, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(arguments, " "), err, out)
		}
		return nil
	}
	download := append([]string{"download"}, packs...)
	if run("apt-get", download...) != nil { // the lists of packages may be missing
		if err := run("apt-get", "update"); err != nil {
			return err
		}
		if err := run("apt-get", download...); err != nil {
			return err
		}
	}
	files, err := filepath.Glob(filepath.Join(scratch, "*.deb"))
	if err != nil || len(files) != len(packs) {
		return fmt.Errorf("apt-get download gave %q, %w", files, err)
	}
	for _, file := range files {
		if err := run("dpkg-deb", "-x", file, "root"); err != nil {
			return err
		}
	}
	root := filepath.Join(scratch, "root")
	ldd := exec.CommandContext(ctx, "ldd", filepath.Join(root, program))
	ldd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(root, Libraries))
	libraries, err := ldd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("ldd: %w\n%s", err, libraries)
	}
	for _, found := range library.FindAllSubmatch(libraries, -1) {
		path := string(found[1])
		if strings.HasPrefix(path, root) {
			continue
		}
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(path)), 0o755); err != nil {
			return err
		}
		if err := run("cp", "-L", path, filepath.Join(root, path)); err != nil {
			return err
		}
	}
	return os.Rename(root, folder)
}

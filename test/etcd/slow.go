package etcd

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// slow is the file of etcd that syncs its write-ahead log, for which each write waits. A sync takes longer by the
// duration in the file that delayVariable names.
var slow = map[[2]string]string{
	{"go.etcd.io/etcd/client/pkg/v3", "fileutil/sync_linux.go"}: `package fileutil

import (
	"os"
	"syscall"
	"time"
)

func wait() {
	text, _ := os.ReadFile(os.Getenv("` + delayVariable + `"))
	d, _ := time.ParseDuration(string(text))
	time.Sleep(d)
}

func Fsync(f *os.File) error { wait(); return f.Sync() }

func Fdatasync(f *os.File) error { wait(); return syscall.Fdatasync(int(f.Fd())) }
`,
}

const delayVariable = "ETCD_SYNC_DELAY"

// StartSlow starts n servers that are one cluster, whose disks the returned function makes slow: each sync of the
// write-ahead log takes longer by a duration. That needs no rights, since these servers wait themselves. Flags must not turn off syncs.
func StartSlow(t testing.TB, n int, flags ...string) (servers []*Server, setDelay func(time.Duration)) {
	t.Helper()
	binary, err := buildSlow()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "delay")
	setDelay = func(d time.Duration) {
		t.Helper()
		if err := os.WriteFile(file+".new", []byte(d.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	setDelay(0)
	return startCluster(t, n, binary, []string{delayVariable + "=" + file}, flags), setDelay
}

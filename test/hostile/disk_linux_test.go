package hostile

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hdsd/test/disk"
	"hdsd/test/envoy"
	"hdsd/test/fleet"
	"hdsd/test/upstream"
)

func TestMain(m *testing.M) {
	disk.Main()
	os.Exit(m.Run())
}

// failing has all operations of a kind fail.
func failing(kind disk.Kind, err error) func(disk.Op) (time.Duration, error) {
	return func(op disk.Op) (time.Duration, error) {
		if op.Kind == kind {
			return 0, err
		}
		return 0, nil
	}
}

// TestDisksInTrouble has the disk of a whole hdsd fail or be slow. An outage is found and
// published all the same, a freeze is answered, and /readyz stays 200 and says what is
// wrong. When the disk works again, the outage is in the history.
func TestDisksInTrouble(t *testing.T) {
	for name, test := range map[string]struct {
		fault func(disk.Op) (time.Duration, error)
		fails bool
	}{
		"full":       {failing(disk.Write, syscall.ENOSPC), true},
		"read-only":  {failing(disk.Write, syscall.EROFS), true},
		"syncs fail": {failing(disk.Sync, syscall.EIO), true},
		"syncs take 1 s": {func(op disk.Op) (time.Duration, error) {
			return map[bool]time.Duration{true: time.Second}[op.Kind == disk.Sync], nil
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var d *disk.Disk
			s, up := newSiteBy(t, func(c *fleet.Coordinator) {
				c.Launch = func(command *exec.Cmd) error {
					d = disk.Start(t, command, filepath.Join(c.Dir, "data"))
					return nil
				}
			})
			d.SetFault(test.fault)
			if err := up.Set(upstream.Status(503)); err != nil {
				t.Fatal(err)
			}
			s.AwaitHealth("web", s.up, "UNHEALTHY")
			if test.fails {
				envoy.Eventually(t, fleet.Patience, "/readyz to say what fails", func() bool { return strings.Contains(s.readiness(t), "history failing") })
			}
			if durable := s.freeze(t); durable && test.fails { // a slow disk may take it in time, or not
				t.Error("a freeze is durable")
			}
			d.SetFault(nil)
			envoy.Eventually(t, fleet.Patience, "the outage to be recorded", func() bool { return len(s.Transitions("web")) == 3 })
			envoy.Eventually(t, fleet.Patience, "/readyz to be content", func() bool { return !strings.Contains(s.readiness(t), "history failing") })
		})
	}
}

// readiness returns what /readyz says, which has to be 200.
func (s *site) readiness(t *testing.T) string {
	t.Helper()
	answer, err := asking.Get("http://" + s.HTTP + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s %s, %v", answer.Status, text, err)
	}
	return string(text)
}

// freeze freezes publishing, and reports whether that is on disk.
func (s *site) freeze(t *testing.T) (durable bool) {
	t.Helper()
	answer, err := asking.Post("http://"+s.HTTP+"/v1/freeze", "application/json", strings.NewReader(`{"reason": "a test"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s %s, %v", answer.Status, text, err)
	}
	var said struct{ NotDurable string }
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&said); err != nil {
		t.Fatal(err)
	}
	return said.NotDurable == ""
}

// TestAStartOnADiskInTrouble starts a whole hdsd that was killed, while its disk fails. It
// serves what it knew, says that the history fails, finds an outage, and recovers.
func TestAStartOnADiskInTrouble(t *testing.T) {
	for name, fault := range map[string]func(disk.Op) (time.Duration, error){
		"full":       failing(disk.Write, syscall.ENOSPC),
		"read-only":  failing(disk.Write, syscall.EROFS),
		"syncs fail": failing(disk.Sync, syscall.EIO),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, up := newSiteBy(t, func(*fleet.Coordinator) {})
			before := len(s.Transitions("web"))
			s.Kill()
			var d *disk.Disk
			s.Launch = func(command *exec.Cmd) error {
				d = disk.Start(t, command, filepath.Join(s.Dir, "data"))
				d.SetFault(fault)
				return nil
			}
			s.Start()
			if text := s.readiness(t); !strings.Contains(text, "history failing") {
				t.Errorf("/readyz: %s", text)
			}
			if now := s.Endpoints("web"); now[s.up].Health != "HEALTHY" || now[s.down].Health != "UNHEALTHY" || len(s.Transitions("web")) != before {
				t.Errorf("it knows %+v and %d transitions", now, len(s.Transitions("web")))
			}
			if err := up.Set(upstream.Status(503)); err != nil {
				t.Fatal(err)
			}
			s.AwaitHealth("web", s.up, "UNHEALTHY")
			d.SetFault(nil)
			envoy.Eventually(t, fleet.Patience, "the outage to be recorded", func() bool { return len(s.Transitions("web")) == before+1 })
			envoy.Eventually(t, fleet.Patience, "/readyz to be content", func() bool { return !strings.Contains(s.readiness(t), "history failing") })
		})
	}
}

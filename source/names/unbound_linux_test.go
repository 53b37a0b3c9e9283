package names

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"hdsd/test/debian"
)

// unbound is Debian's DNS server of that name.
type unbound struct {
	t       testing.TB
	address string
	file    string
	command *exec.Cmd
}

// startUnbound starts one that has no names. It sends no more than 512 bytes over UDP.
func startUnbound(t testing.TB) *unbound {
	t.Helper()
	root := debian.Unpacked(t, "usr/sbin/unbound", "unbound", "libprotobuf-c1", "libevent-2.1-7")
	u := &unbound{t: t, address: freeAddress(t), file: filepath.Join(t.TempDir(), "unbound.conf")}
	u.write()
	u.command = exec.Command(filepath.Join(root, "usr", "sbin", "unbound"), "-d", "-c", u.file)
	u.command.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(root, debian.Libraries))
	u.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := u.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = u.command.Process.Kill()
		_ = u.command.Wait()
	})
	u.answers()
	return u
}

// freeAddress returns one whose port nobody has, neither for UDP nor for TCP.
func freeAddress(t testing.TB) string {
	t.Helper()
	for {
		udp, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := udp.LocalAddr().String()
		tcp, err := net.Listen("tcp", address)
		_ = udp.Close()
		if err == nil {
			_ = tcp.Close()
			return address
		}
	}
}

// write writes a configuration with these lines.
func (u *unbound) write(lines ...string) {
	u.t.Helper()
	host, port, _ := net.SplitHostPort(u.address)
	text := fmt.Sprintf("server:\n interface: %s@%s\n directory: %q\n chroot: \"\"\n username: \"\"\n pidfile: \"\"\n use-syslog: no\n verbosity: 0\n rrset-roundrobin: no\n"+
		" module-config: \"iterator\"\n max-udp-size: 512\n local-zone: \"test.\" static\n%s\nremote-control:\n control-enable: no\n",
		host, port, filepath.Dir(u.file), strings.Join(lines, "\n"))
	if err := os.WriteFile(u.file, []byte(text), 0o600); err != nil {
		u.t.Fatal(err)
	}
}

// answers waits until it answers anything.
func (u *unbound) answers() {
	u.t.Helper()
	question := new(dns.Msg).SetQuestion("test.", dns.TypeSOA)
	for until := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := dns.Exchange(question, u.address); err == nil {
			return
		} else if time.Now().After(until) {
			u.t.Fatal(err)
		}
	}
}

// has gives a name other addresses.
func (u *unbound) has(name string, addresses ...string) {
	u.t.Helper()
	var lines []string
	for _, address := range addresses {
		kind := "A"
		if strings.Contains(address, ":") {
			kind = "AAAA"
		}
		lines = append(lines, fmt.Sprintf(" local-data: \"%s. 1 IN %s %s\"", name, kind, address))
	}
	u.write(lines...)
	u.signal(syscall.SIGHUP)
}

// zone has it do something of its own with a name.
func (u *unbound) zone(name, does string) {
	u.t.Helper()
	u.write(fmt.Sprintf(" local-zone: \"%s.\" %s", name, does))
	u.signal(syscall.SIGHUP)
}

func (u *unbound) signal(s syscall.Signal) {
	u.t.Helper()
	if err := u.command.Process.Signal(s); err != nil {
		u.t.Fatal(err)
	}
}

// TestUnbound: the answers of a real server are followed, over TCP if they do not fit a packet,
// and held while it refuses, denies the name, or says nothing.
func TestUnbound(t *testing.T) {
	u := startUnbound(t)
	r := New(Options{})
	r.lookup = clientOf(t, u.address).lookup
	all := run(t, r)
	q := question("web.test")
	u.has("web.test", "10.0.0.1", "2001:db8::1")
	r.Need("local", []Question{q})
	all.until(q, "10.0.0.1 2001:db8::1")
	u.has("web.test", "10.0.0.2")
	all.until(q, "10.0.0.2")
	u.zone("web.test", "always_refuse")
	all.until(q, "10.0.0.2, but: "+u.address+": it answers REFUSED")
	u.zone("web.test", "always_nxdomain")
	all.until(q, "10.0.0.2, but: there is no such name (NXDOMAIN)")
	u.signal(syscall.SIGSTOP)
	all.until(q, "10.0.0.2, but: "+u.address+": no answer in time")
	u.signal(syscall.SIGCONT)
	var many []string
	for i := range 100 { // 1,600 bytes
		many = append(many, fmt.Sprintf("10.0.1.%d", i+100))
	}
	u.has("web.test", many...)
	all.until(q, strings.Join(many, " "))
	u.has("web.test", "10.0.0.3")
	all.until(q, "10.0.0.3")
}

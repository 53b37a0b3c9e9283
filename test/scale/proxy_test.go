package scale

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// proxied is the environment variable that makes the test binary a plain proxy.
const proxied = "HDSD_TEST_PROXY_TO"

// TestMain has the test binary be a proxy where it is told to.
func TestMain(m *testing.M) {
	if to := os.Getenv(proxied); to != "" {
		if err := beProxy(to); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// beProxy copies bytes between those that connect and an address, and prints its own.
func beProxy(to string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	for {
		client, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer client.Close()
			server, err := net.Dial("tcp", to)
			if err != nil {
				return
			}
			defer server.Close()
			go func() {
				defer server.Close()
				_, _ = io.Copy(server, client) // until one of them closes
			}()
			_, _ = io.Copy(client, server)
		}()
	}
}

// startProxy starts a plain proxy to an address in a process of its own.
func startProxy(t testing.TB, to string) (address string, pid int) {
	t.Helper()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), proxied+"="+to)
	command.Stderr = os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line), command.Process.Pid
}

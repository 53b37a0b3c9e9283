package upstream

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
)

// backlog is how many connections may wait for accept.
const backlog = 128

// hold keeps a TCP address without listening: the kernel refuses connections, and no
// other program gets the port. While earlier connections linger, the address has to be
// shared with any program that asks for this very port.
func hold(address netip.AddrPort) (*os.File, error) {
	held, err := bind(address, 0)
	if errors.Is(err, syscall.EADDRINUSE) {
		held, err = bind(address, 1)
	}
	if err != nil {
		return nil, fmt.Errorf("upstream holds %s: %w", address, err)
	}
	return held, nil
}

// bind binds a TCP socket; reuse is its SO_REUSEADDR.
func bind(address netip.AddrPort, reuse int) (*os.File, error) {
	family, at := syscall.AF_INET6, syscall.Sockaddr(&syscall.SockaddrInet6{Addr: address.Addr().As16(), Port: int(address.Port())})
	if address.Addr().Is4() {
		family, at = syscall.AF_INET, &syscall.SockaddrInet4{Addr: address.Addr().As4(), Port: int(address.Port())}
	}
	syscall.ForkLock.RLock() // so that no child inherits it
	fd, err := syscall.Socket(family, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, err
	}
	held := os.NewFile(uintptr(fd), address.String())
	err = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, reuse)
	if err == nil {
		err = syscall.Bind(fd, at)
	}
	if err != nil {
		held.Close()
		return nil, err
	}
	return held, nil
}

// listenHeld listens on a held address, and closes held.
func listenHeld(held *os.File) (net.Listener, error) {
	defer held.Close() // the listener has its own
	raw, err := held.SyscallConn()
	if err != nil {
		return nil, err
	}
	var refused error
	err = raw.Control(func(fd uintptr) {
		// Lingering connections must not keep the port from the next program.
		refused = errors.Join(syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1), syscall.Listen(int(fd), backlog))
	})
	if err = errors.Join(err, refused); err != nil {
		return nil, err
	}
	return net.FileListener(held)
}

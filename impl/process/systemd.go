package process

import (
	"fmt"
	"net"
	"os"
)

// What a service tells.
const (
	Ready    = "READY=1"
	Stopping = "STOPPING=1"
)

// Wanted reports whether somebody listens.
func Wanted() bool { return os.Getenv("NOTIFY_SOCKET") != "" }

// Tell says it. systemd takes each datagram by itself, so nothing is kept open.
func Tell(state string) error {
	return tell(state, func(conn *net.UnixConn) error {
		_, err := conn.Write([]byte(state))
		return err
	})
}

func tell(state string, write func(*net.UnixConn) error) error {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return nil
	}
	to := &net.UnixAddr{Name: path, Net: "unixgram"} // a first @ is an abstract socket to net as well
	conn, err := net.DialUnix(to.Net, nil, to)
	if err != nil {
		return fmt.Errorf("tell systemd %q: %w", state, err)
	}
	defer conn.Close()
	if err := write(conn); err != nil {
		return fmt.Errorf("tell systemd %q: %w", state, err)
	}
	return nil
}

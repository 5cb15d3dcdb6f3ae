package reverse

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// flowOf says how a connection of TCP stands, and has the kernel hold no more of it than paceUnsent; nil if it is none.
func flowOf(conn syscall.Conn) func() (flow, bool) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil
	}
	set := func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, paceUnsent)
	}
	if e := raw.Control(set); e != nil || err != nil {
		return nil
	}
	return func() (f flow, ok bool) {
		e := raw.Control(func(fd uintptr) {
			info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
			if err != nil {
				return
			}
			segment := int(info.Snd_mss)
			ok, f = true, flow{
				segment: segment, inFlight: int(info.Unacked) * segment, unsent: int(info.Notsent_bytes),
				trip: time.Duration(info.Rtt) * time.Microsecond, shortest: time.Duration(info.Min_rtt) * time.Microsecond, acked: info.Bytes_acked,
				busy: time.Duration(info.Busy_time) * time.Microsecond,
			}
		})
		return f, ok && e == nil
	}
}

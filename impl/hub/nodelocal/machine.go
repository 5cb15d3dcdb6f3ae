package nodelocal

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"syscall"
)

// Machine is where the address of pods is. Something else may take it away: systemd-networkd takes addresses that it
// did not set.
type Machine interface {
	// Has reports whether an interface has an address.
	Has(netip.Addr) (bool, error)
	// Give gives the loopback interface an address of this machine alone. It needs the capability NET_ADMIN.
	Give(netip.Addr) error
}

// System is this machine, in the network namespace of the process.
type System struct{}

// Has implements Machine.
func (System) Has(a netip.Addr) (bool, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return false, fmt.Errorf("read the addresses of this machine: %w", err)
	}
	for _, o := range all {
		if n, ok := o.(*net.IPNet); ok {
			if at, ok := netip.AddrFromSlice(n.IP); ok && at.Unmap() == a {
				return true, nil
			}
		}
	}
	return false, nil
}

// Layout of rtnetlink(7): struct nlmsghdr of 16 bytes, struct ifaddrmsg of 8, and two attributes of 4 and the address.
const (
	addressHead = syscall.SizeofNlMsghdr + syscall.SizeofIfAddrmsg
	answerBytes = 4 << 10
)

// Give implements Machine. It is what "ip address replace ADDRESS dev lo scope host" does.
func (System) Give(a netip.Addr) error {
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		return fmt.Errorf("the loopback interface: %w", err)
	}
	raw, family := a.AsSlice(), byte(syscall.AF_INET)
	if a.Is6() {
		family = syscall.AF_INET6
	}
	attribute := syscall.SizeofRtAttr + len(raw)
	b := make([]byte, addressHead+2*attribute)
	binary.NativeEndian.PutUint32(b, uint32(len(b))) //nolint:gosec // 64 bytes at most
	binary.NativeEndian.PutUint16(b[4:], syscall.RTM_NEWADDR)
	binary.NativeEndian.PutUint16(b[6:], syscall.NLM_F_REQUEST|syscall.NLM_F_ACK|syscall.NLM_F_CREATE|
		syscall.NLM_F_REPLACE)
	b[16], b[17], b[19] = family, byte(a.BitLen()), syscall.RT_SCOPE_HOST
	binary.NativeEndian.PutUint32(b[20:], uint32(lo.Index)) //nolint:gosec // the kernel's, above 0
	for i, kind := range []uint16{syscall.IFA_LOCAL, syscall.IFA_ADDRESS} {
		at := b[addressHead+i*attribute:]
		binary.NativeEndian.PutUint16(at, uint16(attribute)) //nolint:gosec // 20 at most
		binary.NativeEndian.PutUint16(at[2:], kind)
		copy(at[4:], raw)
	}
	return exchange(b)
}

// exchange sends a request of rtnetlink, and reads whether it was done.
func exchange(request []byte) error {
	s, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, syscall.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("netlink: %w", err)
	}
	defer syscall.Close(s)
	kernel := &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK}
	if err := syscall.Sendto(s, request, 0, kernel); err != nil {
		return fmt.Errorf("netlink: %w", err)
	}
	answer := make([]byte, answerBytes)
	n, _, err := syscall.Recvfrom(s, answer, 0)
	if err != nil {
		return fmt.Errorf("netlink: %w", err)
	}
	all, err := syscall.ParseNetlinkMessage(answer[:n])
	if err != nil {
		return fmt.Errorf("netlink: %w", err)
	}
	for _, m := range all {
		if m.Header.Type == syscall.NLMSG_ERROR && len(m.Data) >= 4 {
			if code := int32(binary.NativeEndian.Uint32(m.Data)); code != 0 { //nolint:gosec // the kernel's -errno
				return fmt.Errorf("netlink: %w", syscall.Errno(-code)) //nolint:gosec // likewise
			}
			return nil
		}
	}
	return fmt.Errorf("netlink: %d bytes that answer nothing", n)
}

package loopback

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"syscall"
)

// The range of addresses for Nodes, and the length of its prefix.
const (
	nodesFirst, nodesFrom, nodesTo = 198, 18, 19
	nodesPrefix                    = 15
)

// routeNodes makes the range this machine's own, if it is not yet. The route stays: it costs nothing, and others may
// use it.
func routeNodes(ctx context.Context, b *Block) error {
	address, err := b.Addr(1)
	if err != nil {
		return err
	}
	bind := func() error {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(address, "0"))
		if err == nil {
			err = l.Close()
		}
		return err
	}
	if bind() == nil {
		return nil
	}
	if err := addRoute(); err != nil {
		return fmt.Errorf("addresses for Nodes: add route: %w; as root, do: ip route add local %d.%d.0.0/%d dev lo", err,
			nodesFirst, nodesFrom, nodesPrefix)
	}
	return bind()
}

// addRoute does what ip route add local 198.18.0.0/15 dev lo does.
func addRoute() error {
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		return err
	}
	s, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, syscall.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer syscall.Close(s)
	order := binary.NativeEndian
	// struct rtmsg, and the attributes destination and interface.
	route := []byte{
		syscall.AF_INET, nodesPrefix, 0, 0, syscall.RT_TABLE_LOCAL, syscall.RTPROT_STATIC, syscall.RT_SCOPE_HOST,
		syscall.RTN_LOCAL, 0, 0, 0, 0,
	}
	attribute := func(kind uint16, value []byte) {
		route = order.AppendUint16(route, uint16(4+len(value)))
		route = append(order.AppendUint16(route, kind), value...)
	}
	attribute(syscall.RTA_DST, []byte{nodesFirst, nodesFrom, 0, 0})
	attribute(syscall.RTA_OIF, order.AppendUint32(nil, uint32(lo.Index)))
	message := order.AppendUint32(nil, uint32(syscall.NLMSG_HDRLEN+len(route)))
	message = order.AppendUint16(message, syscall.RTM_NEWROUTE)
	message = order.AppendUint16(message, syscall.NLM_F_REQUEST|syscall.NLM_F_ACK|syscall.NLM_F_CREATE|syscall.NLM_F_EXCL)
	message = append(message, make([]byte, 8)...) // sequence and port
	if err := syscall.Sendto(s, append(message, route...), 0, &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK}); err !=
		nil {
		return err
	}
	answer := make([]byte, syscall.Getpagesize())
	n, _, err := syscall.Recvfrom(s, answer, 0)
	if err != nil {
		return err
	}
	all, err := syscall.ParseNetlinkMessage(answer[:n])
	if err != nil {
		return err
	}
	for _, m := range all {
		if m.Header.Type != syscall.NLMSG_ERROR || len(m.Data) < 4 {
			continue
		}
		if code := syscall.Errno(-int32(order.Uint32(m.Data))); code != 0 && !errors.Is(code, syscall.EEXIST) {
			return code
		}
		return nil
	}
	return errors.New("the kernel does not say what became of it")
}

package runtime

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

const tcpEstablished = "01" // TCP_ESTABLISHED, linux/include/net/tcp_states.h

// connectedTo reads tables in the form of /proc/net/tcp and returns the addresses that have a connection to a local
// port.
func connectedTo(tables string, port int) map[string]bool {
	peers := map[string]bool{}
	local := fmt.Sprintf(":%04X", port)
	for line := range strings.Lines(tables) {
		f := strings.Fields(line) // sl, local_address, rem_address, st, …
		if len(f) < 4 || f[3] != tcpEstablished || !strings.HasSuffix(f[1], local) {
			continue
		}
		host, _, _ := strings.Cut(f[2], ":")
		if peer, ok := procAddress(host); ok {
			peers[peer.String()] = true
		}
	}
	return peers
}

// procAddress reads an address as /proc/net/tcp writes it: hexadecimal, in words of four bytes in the order of this
// machine, which is little endian wherever kind runs.
func procAddress(s string) (netip.Addr, bool) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b)%4 != 0 {
		return netip.Addr{}, false
	}
	for i := 0; i < len(b); i += 4 {
		slices.Reverse(b[i : i+4])
	}
	a, ok := netip.AddrFromSlice(b)
	return a.Unmap(), ok
}

package link

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"sync"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
)

// Proxy is the near end of the link for one traffic class of one node.
type Proxy struct {
	pool                  *Pool
	node, class, upstream string
	listener              net.Listener
	toxiproxy             *toxiproxy.Proxy // only its toxics are used; it never listens

	starting sync.Mutex // one connection at a time sets up its links
	uplinks  [2]*uplink // by Direction.index
	hosts    [2]*host   // likewise
}

// Proxy opens a listener for one traffic class of a node. Connections to it cross the link and end at upstream, an
// address "host:port". An address with port 0 gets a free one, see Addr.
func (p *Pool) Proxy(node, class, listen, upstream string) (*Proxy, error) {
	x := &Proxy{pool: p, node: node, class: class, upstream: upstream}
	x.toxiproxy = toxiproxy.NewProxy(p.server, p.name+"/"+node+"/"+class, listen, upstream)
	for _, d := range []Direction{Up, Down} {
		u, err := addOurs[*uplink](x, toxicType, d)
		if err != nil {
			return nil, err
		}
		o, err := addOurs[*host](x, hostType, d)
		if err != nil {
			return nil, err
		}
		x.uplinks[d.index()], x.hosts[d.index()] = u, o
	}

	var err error
	if x.listener, err = new(net.ListenConfig).Listen(p.ctx, "tcp", listen); err != nil {
		return nil, fmt.Errorf("link %s: listen for %s traffic of %s: %w", p.name, class, node, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errors.Join(fmt.Errorf("link %s is closed", p.name), x.listener.Close())
	}
	p.proxies = append(p.proxies, x)
	p.wg.Add(1)
	go x.accept()
	return x, nil
}

// addOurs puts one of our toxics at the end of a direction.
func addOurs[T any](x *Proxy, kind string, d Direction) (t T, err error) {
	spec := fmt.Sprintf(`{"name":"%s_%s","type":%q,"stream":%q,"attributes":{}}`, kind, d, kind, d.stream())
	w, err := x.toxiproxy.Toxics.AddToxicJson(bytes.NewBufferString(spec))
	if err != nil {
		return t, fmt.Errorf("link %s: add toxic: %w", x.pool.name, err)
	}
	t, ok := w.Toxic.(T)
	if !ok {
		return t, fmt.Errorf("link %s: toxiproxy made a %T of our toxic", x.pool.name, w.Toxic)
	}
	return t, nil
}

// Addr is the address that clients connect to.
func (x *Proxy) Addr() string { return x.listener.Addr().String() }

// Node is the node whose traffic this is.
func (x *Proxy) Node() string { return x.node }

// Class is the traffic class.
func (x *Proxy) Class() string { return x.class }

func (x *Proxy) accept() {
	defer x.pool.wg.Done()
	for {
		client, err := x.listener.Accept()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				x.pool.log.Error("no more connections are accepted", "node", x.node, "class", x.class, "err", err)
			}
			return
		}
		tcp, ok := client.(*net.TCPConn)
		if !ok {
			_ = client.Close()
			continue
		}
		x.pool.wg.Add(1)
		go func() {
			defer x.pool.wg.Done()
			x.serve(tcp)
		}()
	}
}

// startLinks hands both directions of a connection to toxiproxy.
func (x *Proxy) startLinks(c *conn) {
	x.starting.Lock()
	defer x.starting.Unlock()
	for _, d := range []Direction{Up, Down} {
		h := c.halves[d.index()]
		x.uplinks[d.index()].next, x.hosts[d.index()].next = h, h
		name := fmt.Sprintf("%d/%s", c.id, d)
		x.toxiproxy.Toxics.StartLink(x.pool.server, name, h.source(), h.sink(), d.stream())
	}
}

package hub

import (
	"errors"
	"net"
	"path/filepath"
	"slices"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/credential"
	"github.com/weir-edge/weir/impl/disk"
	"github.com/weir-edge/weir/impl/hub/door"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/process"
)

// machine is what a hub has of its machine: its configuration, clock, ports and disk. All else is built of it.
type machine struct {
	*settings
	clock   clock.WithTickerAndDelayedExecution
	metrics *metrics
	asking  *credential.KeeperMetrics
	reload  *uplink.Reloader // of certificates in files
	lacks   *process.Lacks   // of ports, and of what else a hub needs
	time    *pki.Proven      // by which all are judged
	key     *disk.Key        // of what is kept of objects; nil: nothing is encrypted
	ports

	opened []func() // what close gives back
}

// ports are those that are open; nil: one is not.
type ports struct{ secure, health, plain, atPool net.Listener }

// open takes what the machine has. A machine that was opened must be closed.
func open(s *settings) (*machine, error) {
	m := &machine{
		settings: s, clock: s.clock, metrics: newMetrics(s.NodeName, s.NodePoolName), asking: credential.NewKeeperMetrics(),
	}
	if m.clock == nil {
		m.clock = clock.RealClock{}
	}
	m.reload = &uplink.Reloader{Clock: m.clock, Logger: s.Logger}
	m.lacks = &process.Lacks{Clock: m.clock, Logger: s.Logger, Files: m.reload.Failing}
	if err := m.listen(); err != nil {
		m.close()
		return nil, err
	}
	if err := m.place(); err != nil {
		m.close()
		return nil, err
	}
	m.time = pki.OpenProven(filepath.Join(m.DataDir, "time"), m.clock, m.Logger)
	if m.EnrolCoordinatorDir != "" {
		m.time.HandOn(filepath.Join(m.EnrolCoordinatorDir, pki.CloudTimeFile))
	}
	return m, nil
}

// close gives back what was opened, the last first.
func (m *machine) close() {
	for _, give := range slices.Backward(m.opened) {
		give()
	}
}

// listen opens the ports. A hub without that of the API is none; without another one it goes on.
func (m *machine) listen() (err error) {
	at := func(flag, address string, port int) (net.Listener, error) {
		l, err := door.Listen(m.Net, flag, address, port)
		if err == nil {
			m.opened = append(m.opened, func() { _ = l.Close() })
		}
		return l, err
	}
	if m.secure, err = at("--secure-port", m.BindAddress, m.SecurePort); err != nil {
		return err
	}
	port := func(flag, address string, port int, without string) (net.Listener, error) {
		return m.lacks.Port(flag, func() (net.Listener, error) { return at(flag, address, port) }, without)
	}
	m.health, err = port("--health-port", m.HealthBindAddress, m.HealthPort,
		"health, metrics and status are at a port that this log names")
	if err == nil && m.health == nil {
		m.health, err = at("--health-port", m.HealthBindAddress, 0)
	}
	if err == nil && m.ProxyPort != 0 {
		m.plain, err = port("--proxy-port", m.BindAddress, m.ProxyPort, "there is no plain HTTP port")
	}
	if err == nil && m.EnableCoordinator && m.PoolAddress != contract.PoolAddressReverse {
		m.atPool, err = port("--pool-port", m.PoolBindAddress, m.PoolPort,
			"the node is in no pool: all that it reads comes from the cloud")
		if m.atPool == nil {
			m.EnableCoordinator, m.EnrolCoordinatorDir = false, ""
		}
	}
	return err
}

// place finds where data is kept, and by which key. What stands in for that is small.
func (m *machine) place() error {
	in, key, err := m.lacks.Place(m.DataDir, m.storeKey)
	if wrong := (*cli.UsageError)(nil); err != nil && !errors.As(err, &wrong) {
		return m.cannotKeep(err)
	} else if err != nil {
		return err
	}
	m.reload.Worked = process.DiskWorked(m.DataDir)
	if in != m.DataDir {
		m.DataDir, m.StoreMaxBytes = in, min(m.StoreMaxBytes, process.MaxStandIn)
	}
	m.key = key
	return nil
}

// cannotKeep says what is wrong with the folder for data.
func (m *machine) cannotKeep(err error) error {
	if inUse := (*disk.InUseError)(nil); errors.As(err, &inUse) {
		return err
	}
	return cli.Usage("--data-dir", m.DataDir, "a directory that this process may make and write: "+err.Error())
}

// storeKey finds the key of the store.
func (m *machine) storeKey() (*disk.Key, error) {
	if m.StoreKeyFile == NoKey {
		m.Logger.Warn("Secrets and tokens are kept in the clear: a thief of --data-dir has them", "dir", m.DataDir)
		return nil, nil
	}
	key, file, err := disk.KeySource{
		File: m.StoreKeyFile, Credentials: m.Credentials, Generated: m.etc(storeKey), DataDir: m.DataDir,
	}.Key()
	const want = "a file of 32 random bytes, mode 0600, outside --data-dir; or " + NoKey + ", which encrypts nothing"
	switch bad := (*disk.KeyFileError)(nil); {
	case process.DiskFailed(err):
		return nil, err
	case errors.As(err, &bad):
		flag := "--store-key-file"
		if file == m.etc(storeKey) {
			flag = inEtc(storeKey)
		}
		return nil, cli.Usage(flag, file, want+": "+bad.Err.Error())
	case err == nil && key == nil:
		return nil, cli.Usage("--store-key-file", "", want)
	}
	m.Logger.Info("what is kept of objects is encrypted", "key", file)
	return key, err
}

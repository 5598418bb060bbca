package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sys/unix"

	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/host"
	"podd/reconcile/cgroup"
	"podd/runtime/oomscore"
)

// setUpProcess sets the limits and the cgroup of podd, and the parameters of the kernel. A limit that
// podd cannot set is logged. Only a kernel parameter can prevent podd from running.
func setUpProcess(p *processPlacer) error {
	cfg, log := p.cfg, p.log
	if err := host.ApplyKernelParameters(cfg.KernelParameters, log); err != nil {
		if cfg.KernelParameters == config.CheckKernelParameters {
			return err
		}
		log.Warn("changing kernel parameters failed; pods run with the current parameters", "err", err)
	}
	p.place()
	if err := limitOpenFiles(uint64(cfg.MaxOpenFiles)); err != nil {
		log.Warn("setting the limit of open files failed; podd may not be able to run many pods", "err", err)
	}
	return nil
}

// A processPlacer sets the OOM score and the cgroup of podd.
type processPlacer struct {
	cfg *config.Resources
	log *slog.Logger
	// scoreErr and cgroupErr are the last errors of place; "" after a success.
	scoreErr, cgroupErr string
}

// place sets the OOM score and the cgroup. podd calls it when it starts and, as the kubelet, at intervals,
// because another program may have changed them. place logs an error only if it differs from the last.
func (p *processPlacer) place() {
	p.record(oomscore.Set(p.cfg.OOMScoreAdj), &p.scoreErr, "setting the OOM score of podd failed; the kernel may kill podd when the host is out of memory")
	if p.cfg.OwnCgroup != "" {
		p.record(cgroup.Join(p.cfg.OwnCgroup), &p.cgroupErr, "moving podd to the cgroup of kubeletCgroups failed; podd stays in its cgroup")
	}
}

// record logs message if err is not nil and differs from last, and stores err in last.
func (p *processPlacer) record(err error, last *string, message string) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != *last {
		p.log.Warn(message, "err", text)
	}
	*last = text
}

// limitOpenFiles sets the maximum number of files that podd can open. Programs that podd starts inherit
// this limit. If the process may not raise its hard limit, limitOpenFiles raises the soft limit to the
// hard limit and returns an error.
func limitOpenFiles(limit uint64) error {
	var current unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &current); err != nil {
		return err
	}
	err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: limit, Max: limit})
	if !errors.Is(err, unix.EPERM) {
		return err
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: current.Max, Max: current.Max}); err != nil {
		return err
	}
	return fmt.Errorf("maxOpenFiles is %d, but the hard limit is %d, which podd cannot raise without the capability CAP_SYS_RESOURCE or above fs.nr_open; set LimitNOFILE=%d in the systemd unit, or a lower maxOpenFiles", limit, current.Max, limit)
}

// moveInterval is the interval at which the processes of the root cgroup are moved, as in the kubelet.
const moveInterval = time.Minute

// moveSystemProcesses moves the processes of the root cgroup to the cgroup name until ctx is done. If
// name is "", it does nothing.
func moveSystemProcesses(ctx context.Context, name string, log *slog.Logger) error {
	if name == "" {
		return nil
	}
	tick := time.NewTicker(moveInterval)
	defer tick.Stop()
	lastError := ""
	for {
		text := ""
		if err := cgroup.MoveProcesses("/", name); err != nil {
			text = err.Error()
		}
		if text != "" && text != lastError {
			log.Warn("moving processes to the cgroup of systemCgroups failed; trying again later", "err", text)
		}
		lastError = text
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

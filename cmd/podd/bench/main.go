// Command bench measures the speed and the memory of podd. It compares podd with the floor: the same
// pods, created with bare CRI calls and the configs that podd would send. `make bench` runs it.
//
//	            ┌─ podd: manifests written, removed ─┐
//	round ──────┤                                    ├──▶ one private containerd
//	            └─ floor: CRI calls, n at once    ─┘         │
//	table ◀── times ◀── witness: a FIFO that every container writes to,
//	                    inotify on containerd's task directories
//
// Both sides are measured in the same way, at almost no cost. The process of a container first
// writes the name of its pod to a FIFO of the bench. A task has ended when containerd has removed
// the directory of the task. Nothing polls during a measurement.
//
// Rounds of podd and of the floor alternate, so that other load on the host affects both. podd
// is stopped during a round of the floor, because it would otherwise process the events of the
// runtime. With many pods, the first round of the floor tries several numbers of concurrent calls.
// The later rounds use only the fastest of these numbers.
//
// In the parts "bound" and "cluster", podd is the node of a cluster with a real etcd and kube-
// apiserver. The time of a pod is measured from just before its binding is sent to the API server
// until its process runs. Memory and processor time are compared with those of a podd that has the
// same pods from files. Memory and traffic are compared with those of a kubelet that has the same
// number of pods on a separate containerd at the same time. Traffic is counted in the API server's
// audit log. A missed goal is marked in the table, but is not an error.
//
// In the part "upkeep", an idle podd that evicts pods and removes images is compared with one that does
// not.
//
// In the part "pressure", a pod or images fill the node's disk, or a pod uses the node's memory. podd,
// called as a kubelet, and the kubelet have the same configuration, the same pods and equal disks.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/alecthomas/kong"
	"golang.org/x/sys/unix"
)

type options struct {
	Podd        string        `help:"Path of the podd to measure. Default: build it from this checkout." placeholder:"FILE"`
	Sizes       []int         `default:"20,100" help:"Numbers of pods to start and remove at once."`
	Rounds      int           `default:"3" help:"Number of rounds for each of the --sizes."`
	Singles     int           `default:"9" help:"Number of rounds of the measurements with one pod."`
	Concurrency []int         `default:"2,4,8,16" help:"Numbers of concurrent bare CRI calls to try. podd is compared with the fastest one."`
	Limits      []int         `default:"2,4,8,16" help:"Numbers of parallel starts that the part limits compares with the number that podd chooses."`
	Idle        time.Duration `default:"30s" help:"Duration for which an idle podd is measured."`
	Load        time.Duration `default:"20s" help:"Duration for which each endpoint is overloaded with requests."`
	Traffic     time.Duration `default:"10m" help:"Duration for which requests to the API server are counted. It should be at least 10m, because a kubelet renews its watches after 5 to 10 minutes. 0 counts no requests."`
	Only        []string      `help:"Parts to measure: one, restart, start, burst, limits, idle, probes, endpoints, bound, cluster, upkeep, pressure. Default: all except limits, upkeep and pressure." enum:"one,restart,start,burst,limits,idle,probes,endpoints,bound,cluster,upkeep,pressure"`
	Keep        string        `help:"Directory for working files and podd's log, which is not removed." placeholder:"DIR"`
	Flags       []string      `sep:"none" name:"flag" help:"Flag for podd, for example --flag=--v=4. May be repeated."`
}

// wants reports whether the given part must be measured.
func (o *options) wants(part string) bool {
	for _, p := range o.Only {
		if p == part {
			return true
		}
	}
	return len(o.Only) == 0 && part != "limits" && part != "upkeep" && part != "pressure"
}

func main() {
	var o options
	kong.Parse(&o, kong.Name("bench"), kong.Description("Compare podd with bare CRI calls."))
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

// run measures all parts and prints the table. If a part fails, run prints the results of the
// earlier parts.
func run(ctx context.Context, o options) (err error) {
	b, err := newBench(ctx, o)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := b.close(); err == nil {
			err = closeErr
		}
	}()
	for _, part := range []struct {
		name    string
		measure func(context.Context) error
	}{
		{"one", b.measureOnePod}, {"restart", b.measureRestart}, {"start", b.measureStart}, {"idle", b.measureIdleOnePod}, {"probes", b.measureProbes}, {"burst", b.measureBursts}, {"limits", b.measureLimits}, {"endpoints", b.measureEndpoints}, {"bound", b.measureBinding}, {"cluster", b.measureCluster}, {"upkeep", b.measureUpkeep}, {"pressure", b.measurePressure},
	} {
		if !o.wants(part.name) {
			continue
		}
		if err = part.measure(ctx); err != nil {
			err = fmt.Errorf("measuring %s: %w", part.name, err)
			break
		}
	}
	b.table.print(os.Stdout)
	return err
}

package main

import (
	"context"
	"strings"
	"time"
)

// clusterPodCount is the number of pods on each node of a cluster.
const clusterPodCount = 100

// measureCluster compares podd as a node of a cluster with a podd that runs the same pods from files.
func (b *bench) measureCluster(ctx context.Context) error {
	for _, n := range []int{1, clusterPodCount} {
		filePodsUsage, err := b.measureFilePods(ctx, n)
		if err != nil {
			return err
		}
		if err := b.measureClusterPods(ctx, n, filePodsUsage); err != nil {
			return err
		}
	}
	return nil
}

// measureFilePods measures podd with n pods from files and the objects to which they refer.
func (b *bench) measureFilePods(ctx context.Context, n int) (i idleUsage, err error) {
	if err := b.daemon.startAndSettle(ctx); err != nil {
		return i, err
	}
	pods := b.newPods(n)
	for j := range pods {
		if pods[j].text, err = pods[j].manifestWithObjects(); err != nil {
			return i, err
		}
	}
	if _, _, err := b.startPods(ctx, pods); err != nil {
		return i, err
	}
	if i, err = b.measureIdle(ctx, b.daemon.cmd.Process.Pid); err != nil {
		return i, err
	}
	if err := b.removePods(ctx, pods); err != nil {
		return i, err
	}
	return i, b.daemon.stop()
}

// measureBinding measures the time from the binding of a pod until its process runs.
func (b *bench) measureBinding(ctx context.Context) error {
	c, err := b.joinCluster(ctx)
	if err != nil {
		return err
	}
	r := row{name: "one pod: binding until running", unit: seconds, goal: goal{factor: 1.3}}
	for range b.Singles {
		took, err := b.timeBarePod(ctx)
		if err != nil {
			return err
		}
		r.bare = append(r.bare, took.Seconds())
		if err := c.startPodd(ctx); err != nil {
			return err
		}
		pods := b.newPods(1)
		bindTime, at, err := c.startPods(ctx, nodeName, pods)
		if err != nil {
			return err
		}
		r.podd = append(r.podd, at.Sub(bindTime).Seconds())
		if err := c.removePods(ctx, pods); err != nil {
			return err
		}
		if err := b.daemon.stop(); err != nil {
			return err
		}
	}
	b.table.add(r)
	return b.leaveCluster()
}

// measureClusterPods measures podd with n pods of the cluster. It compares the result with
// filePodsUsage, which is the result of measureFilePods.
func (b *bench) measureClusterPods(ctx context.Context, n int, filePodsUsage idleUsage) error {
	c, err := b.joinCluster(ctx)
	if err != nil {
		return err
	}
	if err := c.startPodd(ctx); err != nil {
		return err
	}
	pods := b.newPods(n)
	if _, _, err := c.startPods(ctx, nodeName, pods); err != nil {
		return err
	}
	i, err := b.measureIdle(ctx, b.daemon.cmd.Process.Pid)
	if err != nil {
		return err
	}
	of := podCount(n) + " (bare: from files; podd: from a cluster)"
	b.table.add(row{name: "RSS, " + of, unit: megabytes, bare: samples{filePodsUsage.resident}, podd: samples{i.resident}, goal: goal{factor: 1, offset: 15e6}})
	b.table.add(row{name: "RssAnon, " + of, unit: megabytes, bare: samples{filePodsUsage.anonymous}, podd: samples{i.anonymous}})
	b.table.add(row{name: "idle CPU, " + of, unit: percent, bare: samples{filePodsUsage.cpuPercent}, podd: samples{i.cpuPercent}, goal: goal{offset: 0.8}})
	if err := b.compareWithKubelet(ctx, c, n); err != nil {
		return err
	}
	if err := c.removePods(ctx, pods); err != nil {
		return err
	}
	return b.leaveCluster()
}

// compareWithKubelet compares the memory of an idle podd and of an idle kubelet, each with n pods.
// If n is clusterPodCount, it also compares the requests that podd and the kubelet send.
func (b *bench) compareWithKubelet(ctx context.Context, c *cluster, n int) (err error) {
	k, err := c.startKubeletNode(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := k.close(); err == nil {
			err = closeErr
		}
	}()
	if _, _, err := c.startPods(ctx, k.name, b.newPods(n)); err != nil {
		return err
	}
	if err := sleep(ctx, time.Minute); err != nil { // wait until statuses, images and events have been sent
		return err
	}
	if n == clusterPodCount && b.Traffic > 0 {
		if err := b.measureTraffic(ctx, c, k); err != nil {
			return err
		}
	}
	kubeletUsage, err := b.measureIdle(ctx, k.cmd.Process.Pid)
	if err != nil {
		return err
	}
	poddUsage, err := b.measureIdle(ctx, b.daemon.cmd.Process.Pid)
	if err != nil {
		return err
	}
	for _, r := range []struct {
		name         string
		theirs, podd float64
	}{{"RssAnon", kubeletUsage.anonymous, poddUsage.anonymous}, {"RSS", kubeletUsage.resident, poddUsage.resident}, {"peak RSS", kubeletUsage.peak, poddUsage.peak}} {
		b.table.add(row{name: r.name + ", " + podCount(n) + " from a cluster (bare: kubelet)", unit: megabytes, bare: samples{r.theirs}, podd: samples{r.podd}})
	}
	return nil
}

// measureTraffic counts the requests of podd and of the kubelet k, each with many pods.
func (b *bench) measureTraffic(ctx context.Context, c *cluster, k *agentNode) error {
	startTime, kubeletCPU, poddCPU := time.Now(), measureCPU(k.cmd.Process.Pid), measureCPU(b.daemon.cmd.Process.Pid)
	printProgress("traffic", "counting requests to the API server for "+b.Traffic.String())
	if err := sleep(ctx, b.Traffic); err != nil {
		return err
	}
	// Events are not compared, because on this host a kubelet records additional events about
	// missing features of the host.
	r := row{name: "requests to the API server except events, 100 pods (bare: kubelet)", unit: perMinute, goal: goal{factor: 1}}
	minutes := time.Since(startTime).Minutes()
	for _, side := range []struct {
		node string
		to   *samples
	}{{k.name, &r.bare}, {nodeName, &r.podd}} {
		requests, err := c.plane.CountRequests(side.node, startTime)
		if err != nil {
			return err
		}
		calls, total := map[string]float64{}, 0.0
		for what, n := range requests {
			calls[what] = float64(n)
			if !strings.HasSuffix(what, " events") {
				total += float64(n)
			}
		}
		*side.to = samples{total / minutes}
		b.table.notes = append(b.table.notes, "requests per minute from node "+side.node+": "+formatCounts(calls, minutes))
	}
	b.table.add(r)
	share := 100 / (60 * minutes)
	b.table.add(row{name: "CPU while these requests were counted (bare: kubelet)", unit: percent, bare: samples{kubeletCPU() * share}, podd: samples{poddCPU() * share}})
	return nil
}

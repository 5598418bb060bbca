package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"podd/cmd/podd/e2e/kubelet"
	"podd/runtime/cri"
	"podd/runtime/runtimetest/stack"
	"podd/runtime/runtimetest/stack/tools"
)

const (
	// diskSize and diskInodes are the size of the node's disk. The runtime, all images, volumes and
	// logs are on this disk.
	diskSize, diskInodes = 512 << 20, 16384
	// minFree is the threshold of the signals nodefs.available, imagefs.available and nodefs.inodesFree,
	// as a share of the disk.
	minFree = 0.15
	// podMemory is the memory in bytes that is allocatable to all pods of the node, and hogMemory is
	// the size of the file with which a pod uses nearly all of it.
	podMemory, hogMemory = 256 << 20, 200 << 20
	// pressureTimeout limits the duration of a case. settledTime is the time without pressure after
	// which a case has ended. It is twice the interval in which a kubelet checks the thresholds.
	pressureTimeout, settledTime = 5 * time.Minute, 20 * time.Second
	// neighborCount is the number of pods that use little, and that must survive.
	neighborCount = 5
)

// A pressureCase is a way to use up a resource of a node.
type pressureCase struct {
	name string
	// script is the command of a pod that uses up the resource. medium is the medium of the pod's
	// emptyDir volume /hog. If script is "", images fill the disk.
	script string
	medium v1.StorageMedium
}

var pressureCases = []pressureCase{
	{name: "a disk full of images"},
	{name: "a disk full of logs", script: `yes "$(head -c 4000 /dev/zero | tr '\0' x)"; exec sleep 100000`},
	{name: "a disk full of a volume", script: "cat /dev/zero >/hog/x; exec sleep 100000"},
	{name: "a disk without inodes", script: "i=0; while :; do i=$((i+1)); true >/hog/$i || sleep 1; done"},
	{name: "a pod that uses the memory", script: fmt.Sprintf("head -c %d /dev/zero >/hog/x; exec sleep 100000", hogMemory), medium: v1.StorageMediumMemory},
}

// pressureResult is the result of a case for one node.
type pressureResult struct {
	pressure      float64 // seconds for which the node was under pressure
	killedPods    int     // number of the other pods with a container that was stopped
	missingImages int     // number of removed images among those that running pods need
}

// measurePressure compares how podd and a kubelet recover from pressure.
func (b *bench) measurePressure(ctx context.Context) error {
	c, err := b.joinCluster(ctx)
	if err != nil {
		return err
	}
	b.daemon.extraFlags = nil // this part uses its own podd
	podd := filepath.Join(b.dir, "podd-as-kubelet", "kubelet")
	file, err := filepath.Abs(b.Podd)
	if err != nil {
		return err
	}
	if err := errors.Join(os.Mkdir(filepath.Dir(podd), 0o755), os.Symlink(file, podd)); err != nil {
		return err
	}
	agents := []agentOptions{
		{name: kubeletName, program: filepath.Join(c.programs.Programs, "kubelet")},
		{name: nodeName, program: podd, flags: []string{"--run-dir", filepath.Join(b.dir, "run")}},
	}
	for _, p := range pressureCases {
		var results [2]pressureResult
		for i, o := range agents {
			if results[i], err = c.measurePressureCase(ctx, o, p); err != nil {
				return fmt.Errorf("node %s with %s: %w", o.name, p.name, err)
			}
		}
		theirs, ours := results[0], results[1]
		b.table.add(row{name: "time under pressure, " + p.name + " (bare: kubelet)", unit: seconds, bare: samples{theirs.pressure}, podd: samples{ours.pressure}, goal: goal{factor: 1}})
		b.table.add(row{name: fmt.Sprintf("other pods killed, of %d (bare: kubelet)", neighborCount), unit: pieces, bare: samples{float64(theirs.killedPods)}, podd: samples{float64(ours.killedPods)}, goal: goal{factor: 1}})
		b.table.add(row{name: "used images removed (bare: kubelet)", unit: pieces, bare: samples{float64(theirs.missingImages)}, podd: samples{float64(ours.missingImages)}, goal: goal{factor: 1}})
	}
	return nil
}

// measurePressureCase starts a node on a new disk, and measures one case.
func (c *cluster) measurePressureCase(ctx context.Context, o agentOptions, p pressureCase) (r pressureResult, err error) {
	o.dir = filepath.Join(c.b.dir, "disk")
	disk, err := newSmallDisk(filepath.Join(c.b.dir, "disk.img"), o.dir, diskSize, diskInodes)
	defer func() { err = errors.Join(err, disk.remove()) }()
	if err != nil {
		return r, err
	}
	if o.pressure, err = pressureConfig(); err != nil {
		return r, err
	}
	node, err := c.startAgentNode(ctx, o)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, node.close()) }()
	unlink, err := kubelet.LinkContainerd(node.stack.Socket())
	if err != nil {
		return r, err
	}
	defer unlink()
	neighbors := c.b.newPods(neighborCount)
	defer func() { err = errors.Join(err, c.deletePods(neighbors)) }()
	if _, _, err := c.startPods(ctx, node.name, neighbors); err != nil {
		return r, err
	}
	before, err := c.waitForContainers(ctx, neighbors)
	if err != nil {
		return r, err
	}
	if r.pressure, err = c.timePressure(ctx, node, disk, p); err != nil {
		return r, err
	}
	after, err := c.readContainers(neighbors)
	if err != nil {
		return r, err
	}
	for name, id := range before {
		if after[name] != id {
			r.killedPods++
		}
	}
	r.missingImages, err = countMissingImages(ctx, node.stack.Endpoint())
	return r, err
}

// pressureConfig returns the configuration of evictions and of image garbage collection.
func pressureConfig() (string, error) {
	var host unix.Sysinfo_t
	if err := unix.Sysinfo(&host); err != nil {
		return "", fmt.Errorf("reading the size of the host's memory: %w", err)
	}
	reserved := uint64(host.Totalram)*uint64(host.Unit) - podMemory
	percentage := int(100 * minFree)
	return fmt.Sprintf(`enforceNodeAllocatable: [pods]
systemReserved: {memory: "%d"}
imageMinimumGCAge: 1s
evictionPressureTransitionPeriod: 10s
evictionHard: {memory.available: 64Mi, nodefs.available: %[2]d%%, nodefs.inodesFree: %[2]d%%, imagefs.available: %[2]d%%}
`, reserved, percentage), nil
}

// timePressure causes the pressure of a case, and returns for how many seconds the node was under
// pressure. It returns when the pressure has ended for settledTime, or after pressureTimeout.
func (c *cluster) timePressure(ctx context.Context, node *agentNode, disk smallDisk, p pressureCase) (float64, error) {
	hog := c.b.newPods(1)[0]
	filled := make(chan error, 1)
	if p.script == "" {
		go func() { filled <- c.fillWithImages(ctx, node, disk) }()
	} else {
		var err error
		if hog, err = asHog(hog, p); err != nil {
			return 0, err
		}
		defer func() { _ = c.deletePods([]pod{hog}) }()
		_, _, err = c.startPods(ctx, node.name, []pod{hog})
		filled <- err
	}
	isFilling, start := true, time.Now()
	var total time.Duration
	for lastPressure, lastCheck := start, start; ; {
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return 0, err
		}
		isUnderPressure, err := c.isUnderPressure(disk, p, hog)
		if err != nil {
			return 0, err
		}
		now := time.Now()
		if isUnderPressure {
			total += now.Sub(lastCheck)
		}
		lastCheck = now
		select {
		case err := <-filled:
			if err != nil {
				return 0, err
			}
			isFilling = false
		default:
		}
		if isUnderPressure || isFilling {
			lastPressure = now
		}
		if now.Sub(start) > pressureTimeout {
			c.b.table.notes = append(c.b.table.notes, fmt.Sprintf("node %s did not recover from %s within %s", node.name, p.name, pressureTimeout))
			return total.Seconds(), nil
		}
		if now.Sub(lastPressure) > settledTime {
			return total.Seconds(), nil
		}
	}
}

// isUnderPressure reports whether the disk has less free space than the threshold. In the case of a
// pod that uses the memory, it reports whether this pod, hog, has not failed.
func (c *cluster) isUnderPressure(disk smallDisk, p pressureCase, hog pod) (bool, error) {
	if p.medium == v1.StorageMediumMemory {
		var object v1.Pod
		err := c.plane.Do(http.MethodGet, defaultNamespacePath+"pods/"+hog.name, nil, &object)
		return object.Status.Phase != v1.PodFailed, err
	}
	blocks, inodes, err := disk.freeShares()
	return blocks < minFree || inodes < minFree, err
}

// asHog returns p, changed to the pod that causes the pressure of a case. It never runs again.
func asHog(p pod, by pressureCase) (pod, error) {
	var object v1.Pod
	if err := yaml.Unmarshal([]byte(p.text), &object); err != nil {
		return p, fmt.Errorf("reading the manifest of %s: %w", p.name, err)
	}
	main := &object.Spec.Containers[0]
	object.Spec.RestartPolicy = v1.RestartPolicyNever
	main.Command[2] = strings.Replace(main.Command[2], waitScript, by.script, 1)
	main.VolumeMounts = append(main.VolumeMounts, v1.VolumeMount{Name: "hog", MountPath: "/hog"})
	object.Spec.Volumes = append(object.Spec.Volumes, v1.Volume{Name: "hog", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: by.medium}}})
	text, err := yaml.Marshal(object)
	return pod{p.name, string(text)}, err
}

// fillWithImages imports images of 16 MiB until the import fails because the disk is full, or less
// than two percent of the disk are free. No pod uses these images.
func (c *cluster) fillWithImages(ctx context.Context, node *agentNode, disk smallDisk) error {
	dir := filepath.Join(c.b.dir, "images")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for i := range diskSize / (16 << 20) {
		blocks, _, err := disk.freeShares()
		if err != nil || blocks < 0.02 {
			return err
		}
		content := make([]byte, 16<<20)
		_, _ = rand.Read(content) // never returns an error
		data, tarball := filepath.Join(dir, "data"), filepath.Join(dir, "image.tar")
		if err := os.WriteFile(data, content, 0o600); err != nil {
			return err
		}
		if err := tools.WriteProgramImages(tarball, map[string]string{fmt.Sprintf("registry.invalid/filler:%d", i): data}); err != nil {
			return err
		}
		if err := node.stack.LoadImages(ctx, tarball); err != nil {
			printProgress("fill", err.Error())
			return ctx.Err()
		}
	}
	return nil
}

// countMissingImages returns how many of the images that all nodes use the runtime does not have.
func countMissingImages(ctx context.Context, endpoint string) (n int, err error) {
	client, err := cri.Dial(cri.Options{Endpoint: endpoint})
	if err != nil {
		return 0, err
	}
	defer client.Close()
	for _, name := range []string{stack.PauseImage, stack.BusyboxImage} {
		_, isPresent, err := client.ImageStatus(ctx, name)
		if err != nil {
			return 0, fmt.Errorf("querying the status of image %s: %w", name, err)
		}
		if !isPresent {
			n++
		}
	}
	return n, nil
}

// waitForContainers waits until the API server shows the containers of all pods as running, and
// returns their IDs by pod name.
func (c *cluster) waitForContainers(ctx context.Context, pods []pod) (map[string]string, error) {
	for {
		ids, err := c.readContainers(pods)
		if err != nil || len(ids) == len(pods) {
			return ids, err
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return nil, fmt.Errorf("waiting until the API server shows %d pods as running: %w", len(pods), err)
		}
	}
}

// readContainers returns the container IDs of the running pods by pod name.
func (c *cluster) readContainers(pods []pod) (map[string]string, error) {
	ids := map[string]string{}
	for _, p := range pods {
		var object v1.Pod
		if err := c.plane.Do(http.MethodGet, defaultNamespacePath+"pods/"+p.name, nil, &object); err != nil {
			return nil, err
		}
		if s := object.Status; s.Phase == v1.PodRunning && len(s.ContainerStatuses) == 1 && s.ContainerStatuses[0].State.Running != nil {
			ids[p.name] = s.ContainerStatuses[0].ContainerID
		}
	}
	return ids, nil
}

// deletePods deletes pods and their objects from the API server, and does not wait for the node.
func (c *cluster) deletePods(pods []pod) error {
	var errs []error
	for _, p := range pods {
		for _, kind := range []string{"pods/", "configmaps/", "secrets/"} {
			errs = append(errs, c.plane.Do(http.MethodDelete, defaultNamespacePath+kind+p.name, &metav1.DeleteOptions{GracePeriodSeconds: new(int64)}, nil))
		}
	}
	return errors.Join(errs...)
}

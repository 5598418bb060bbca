// Package gc decides which images and which dead containers to remove from the node. Its functions
// are pure: the caller lists the images and containers, measures the disk and removes them.
//
//	images, disk, policy, now ──▶ Decide ──▶ removals, in order, and the reasons to keep the others
//	containers, policy, now ──▶ ContainerPolicy.Excess ──▶ removals, in order
//
// The rules for images are those of the kubelet (image_gc_manager.go):
//
//   - An image that is in use, pinned or the sandbox image is never removed.
//   - If the usage of the disk reaches the high threshold, unused images are removed until the
//     usage is below the low threshold. The image that was not used for the longest time is removed
//     first. Images younger than the minimum age are kept, because a container may be about to use
//     them.
//   - An image that was not used for longer than the maximum age is removed, whatever the usage of
//     the disk is.
//
// They differ from the kubelet in one rule: an image that was never used counts as used when it was
// first detected. The kubelet removes such an image at once if a maximum age is set, even if the
// image was pulled a moment ago.
//
// The rules for dead containers, which have exited or were never started, are those of the kubelet
// (kuberuntime_gc.go) for the maximum of all pods together; package plan applies the maximum of each
// container:
//
//   - Containers younger than the minimum age are kept, and are not counted toward the maximum.
//   - If there are more containers than the maximum, each container name of a pod keeps an equal
//     share of the maximum, at least one container.
//   - If that is not enough, the oldest containers of the node are removed.
//
// A container that podd needs is never removed, even if more containers than the maximum remain.
// The kubelet removes such a container, and with it the log and the last state of the container.
package gc

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"podd/manifest/order"
)

// An Image is an image on the node.
type Image struct {
	// ID is the runtime's ID of the image.
	ID        string
	SizeBytes int64
	// Pinned reports whether the runtime's configuration forbids to remove the image.
	Pinned bool
	// IsSandboxImage reports whether the runtime creates sandboxes from the image. Old runtimes do
	// not report this image as pinned.
	IsSandboxImage bool
	// FirstDetected is when podd first listed the image.
	FirstDetected time.Time
	// LastUsed is when podd last found the image in use. It is zero if the image was never in use.
	LastUsed time.Time
	// Users contains the pods and containers that use the image. An image is in use if it has
	// users.
	Users []string
}

// unusedSince returns the time since which the image is not in use.
func (i *Image) unusedSince() time.Time {
	if i.LastUsed.After(i.FirstDetected) {
		return i.LastUsed
	}
	return i.FirstDetected
}

// A Policy contains the settings of image garbage collection.
type Policy struct {
	// HighPercent is the disk usage in percent at which images are removed to free space.
	// LowPercent is the usage at which the removal ends.
	HighPercent, LowPercent int
	// MinAge is the minimum age of an image that is removed to free space.
	MinAge time.Duration
	// MaxAge is the time after which an unused image is removed even if there is space. 0 means
	// never.
	MaxAge time.Duration
}

// IsDisabled reports whether no image is collected, as in the kubelet: the high threshold is 100 and
// there is no maximum age.
func (p Policy) IsDisabled() bool { return p.HighPercent >= 100 && p.MaxAge == 0 }

// A Disk is the file system with the images. A capacity of 0 is invalid: then no image is removed to
// free space.
type Disk struct{ CapacityBytes, AvailableBytes int64 }

// UsedPercent returns the disk usage in percent. It returns 0 if the capacity is unknown.
func (d Disk) UsedPercent() int {
	if d.CapacityBytes <= 0 {
		return 0
	}
	return 100 - int(multiplyDivide(d.available(), 100, d.CapacityBytes))
}

// excess returns the number of bytes that must be freed so that the disk usage is the given
// percentage. The capacity must be known.
func (d Disk) excess(percent int) int64 {
	return multiplyDivide(d.CapacityBytes, int64(100-percent), 100) - d.available()
}

// available returns the available bytes, limited to the capacity.
func (d Disk) available() int64 { return min(max(d.AvailableBytes, 0), d.CapacityBytes) }

// multiplyDivide returns a*b/c without overflow. The result must fit into an int64. The arguments
// must not be negative, and c must not be 0.
func multiplyDivide(a, b, c int64) int64 {
	high, low := bits.Mul64(uint64(a), uint64(b))
	quotient, _ := bits.Div64(high, low, uint64(c))
	return int64(quotient)
}

// A Reason is why an image is removed. It is a value of the label reason of the metric
// kubelet_image_garbage_collected_total.
type Reason string

// The reasons of the kubelet.
const (
	Space Reason = "space" // the disk usage has reached the high threshold
	Age   Reason = "age"   // the image was not used for longer than the maximum age
)

// A Removal is an image to remove.
type Removal struct {
	ID        string
	SizeBytes int64
	Reason    Reason
	// Message explains the reason to users.
	Message string
}

// A Decision is the result of Decide.
type Decision struct {
	// Removals contains the images to remove, in order.
	Removals []Removal
	// Kept contains, by image ID, the reason why each of the other images is kept.
	Kept map[string]string
	// UsedPercent is the disk usage.
	UsedPercent int
	// GoalBytes is the number of bytes to free. It is 0 if the disk usage is below the high
	// threshold. If the sizes of all removals with the reason Space are less than GoalBytes, the
	// disk is full for another reason than unused images.
	GoalBytes int64
}

// Decide returns the images that garbage collection removes now. The result does not depend on the
// order of images.
func Decide(images []Image, disk Disk, p Policy, now time.Time) Decision {
	d := Decision{Kept: map[string]string{}, UsedPercent: disk.UsedPercent()}
	isDiskHigh := disk.CapacityBytes > 0 && d.UsedPercent >= p.HighPercent && !p.IsDisabled()
	if isDiskHigh {
		d.GoalBytes = disk.excess(p.LowPercent)
	}
	var candidates []Image
	var freedBytes int64
	for _, i := range sortLeastRecentlyUsed(images) {
		idle := now.Sub(i.unusedSince())
		switch reason := protectionReason(&i); {
		case reason != "":
			d.Kept[i.ID] = reason
		case p.MaxAge > 0 && idle > p.MaxAge:
			d.Removals = append(d.Removals, Removal{i.ID, i.SizeBytes, Age, "not used for more than " + duration.HumanDuration(p.MaxAge)})
			freedBytes = addSizes(freedBytes, i.SizeBytes)
		default:
			candidates = append(candidates, i)
		}
	}
	for _, i := range candidates {
		switch {
		case p.IsDisabled():
			d.Kept[i.ID] = "garbage collection is disabled"
		case disk.CapacityBytes <= 0:
			d.Kept[i.ID] = "the disk usage is unknown"
		case !isDiskHigh:
			d.Kept[i.ID] = fmt.Sprintf("disk usage %d%% is below %d%%", d.UsedPercent, p.HighPercent)
		case freedBytes >= d.GoalBytes:
			d.Kept[i.ID] = fmt.Sprintf("removing other images is enough to reach %d%%", p.LowPercent)
		case isYoung(&i, p, now):
			d.Kept[i.ID] = youngMessage(p)
		default:
			d.Removals = append(d.Removals, Removal{i.ID, i.SizeBytes, Space, fmt.Sprintf("disk usage %d%% has reached %d%%", d.UsedPercent, p.HighPercent)})
			freedBytes = addSizes(freedBytes, i.SizeBytes)
		}
	}
	return d
}

// diskPressure is the message of a removal when the node needs as much space as possible.
const diskPressure = "the node is under disk pressure"

// Reclaim returns the images to remove if the node needs as much space as possible: all
// unused images, except images younger than the minimum age.
func Reclaim(images []Image, p Policy, now time.Time) Decision {
	return decideUnused(images, Space, diskPressure, func(i *Image) string {
		if isYoung(i, p, now) {
			return youngMessage(p)
		}
		return ""
	})
}

// ReclaimAll returns all unused images, regardless of their age. podd removes them before it evicts a
// pod. A kubelet would keep young images and evict the pod. podd need not keep them, because an image
// that a desired pod needs is in use even before the pod starts.
func ReclaimAll(images []Image) Decision {
	return decideUnused(images, Space, diskPressure, func(*Image) string { return "" })
}

// Prune returns the images to remove if a user requests the removal of all unused images.
func Prune(images []Image) Decision {
	return decideUnused(images, "", "not in use", func(*Image) string { return "" })
}

// decideUnused returns the decision to remove all unprotected images for which the function
// reasonToKeep returns "".
func decideUnused(images []Image, reason Reason, message string, reasonToKeep func(*Image) string) Decision {
	d := Decision{Kept: map[string]string{}}
	for _, i := range sortLeastRecentlyUsed(images) {
		if keepReason := cmp.Or(protectionReason(&i), reasonToKeep(&i)); keepReason != "" {
			d.Kept[i.ID] = keepReason
			continue
		}
		d.Removals = append(d.Removals, Removal{i.ID, i.SizeBytes, reason, message})
	}
	return d
}

// protectionReason returns the reason why an image is never removed; "" if it can be removed.
func protectionReason(i *Image) string {
	switch {
	case len(i.Users) > 0:
		return "in use"
	case i.Pinned:
		return "pinned"
	case i.IsSandboxImage:
		return "sandbox image"
	}
	return ""
}

// isYoung reports whether an image has not reached the minimum age. An image with a time in the
// future, which a step of the clock can cause, is young.
func isYoung(i *Image, p Policy, now time.Time) bool { return now.Sub(i.FirstDetected) < p.MinAge }

func youngMessage(p Policy) string { return "younger than " + duration.HumanDuration(p.MinAge) }

// sortLeastRecentlyUsed returns the images in the order of the kubelet: images that were never used
// first, then by the time of the last use. Images with equal times are sorted by the time when they
// were detected.
func sortLeastRecentlyUsed(images []Image) []Image {
	sorted := slices.Clone(images)
	order.Stable(sorted, func(a, b Image) int {
		return cmp.Or(a.LastUsed.Compare(b.LastUsed), a.FirstDetected.Compare(b.FirstDetected), cmp.Compare(a.ID, b.ID))
	})
	return sorted
}

// addSizes returns the sum of two sizes. Sizes come from the runtime: negative sizes count as 0, and
// a sum that is too large for an int64 is limited.
func addSizes(sum, size int64) int64 {
	size = max(size, 0)
	if sum > math.MaxInt64-size {
		return math.MaxInt64
	}
	return sum + size
}

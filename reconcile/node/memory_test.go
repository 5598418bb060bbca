package node

import (
	"strings"
	"testing"

	"podd/reconcile/eviction/pressure"
)

// slabHeavyHost is the memory of a host of 8 GiB whose kernel caches many directory entries.
const slabHeavyHost = `MemTotal:        8388608 kB
MemFree:           81920 kB
MemAvailable:    6000000 kB
Buffers:           20480 kB
Cached:           819200 kB
SwapCached:        10240 kB
Active(file):     409600 kB
Inactive(file):   348160 kB
AnonPages:       1228800 kB
Shmem:             81920 kB
Slab:            6000000 kB
SReclaimable:    5700000 kB
SUnreclaim:       300000 kB
HugePages_Total:       0
`

func TestMemInfo_Available(t *testing.T) {
	const total = 8388608
	for name, test := range map[string]struct {
		meminfo            string
		hugePagesAvailable bool
		want               int64 // in KiB
	}{
		"kernel memory is available": {slabHeavyHost, false, total - (1228800 + 819200 + 20480 + 10240) + 348160},
		"huge pages are used":        {slabHeavyHost + "Hugetlb:  2097152 kB\n", false, total - (1228800 + 819200 + 20480 + 10240) + 348160 - 2097152},
		"huge pages are available":   {slabHeavyHost + "Hugetlb:  2097152 kB\n", true, total - (1228800 + 819200 + 20480 + 10240) + 348160},
		"more used than present":     {slabHeavyHost + "Hugetlb:  8388608 kB\n", false, 0},
	} {
		got, err := parseMemInfo(test.meminfo).available(test.hugePagesAvailable)
		if want := (pressure.Observation{Capacity: total << 10, Available: test.want << 10}); err != nil || got != want {
			t.Errorf("%s: got %+v, error %v; want %+v", name, got, err, want)
		}
	}
	for _, field := range []string{"MemTotal", "AnonPages", "Inactive(file)"} {
		_, err := parseMemInfo(strings.Replace(slabHeavyHost, field+":", "Other:", 1)).available(false)
		if err == nil || !strings.Contains(err.Error(), "no field "+field) {
			t.Errorf("without %s: got error %v, want an error that names the field", field, err)
		}
	}
	if _, err := parseMemInfo(strings.Replace(slabHeavyHost, "20480 kB", "many", 1)).available(false); err == nil || !strings.Contains(err.Error(), "Buffers of /proc/meminfo") {
		t.Errorf("invalid value: got error %v, want an error that names the field", err)
	}
}

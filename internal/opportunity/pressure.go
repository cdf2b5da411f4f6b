package opportunity

import (
	"os"

	"github.com/coppice-run/coppice/internal/cgroup"
)

// Pressure is the part of the last ten seconds in which a process of our control group,
// or where groups are not counted of this machine, waited for a processor: from 0 to 1.
// 0 where the system does not tell (it is not Linux, or was built without that).
func Pressure() float64 {
	if dir, err := cgroup.Of("", os.Getpid()); err == nil {
		if p := cgroup.ProcessorPressure(dir); p.Counted {
			return p.Recent
		}
	}
	return cgroup.MachinePressure("").Recent
}

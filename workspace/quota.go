package workspace

import "time"

const (
	// diskEvery is how often the folder of a workspace is measured at most, while something goes
	// on, besides when it begins, and diskMost how long at most a big one is not measured besides.
	// diskShare is how many times as long as the measurement that is.
	diskEvery = 100 * time.Millisecond
	diskMost  = 10 * time.Second
	diskShare = 20
	// diskShort is how long a measurement takes at most that each end of a cell may wait for.
	diskShort = 20 * time.Millisecond
)

// disk is what was seen of the folder of a workspace.
type disk struct {
	bytes int64
	turn  uint64    // in which turn of the workspace that was
	looks uint64    // how many there were
	again time.Time // from when on it may be measured again
	told  int64     // what it held when somebody was told last, or a cell had ended
	took  time.Duration
}

// begins reports whether nothing was seen yet of what goes on in a turn.
func (d disk) begins(turn uint64) bool { return d.looks == 0 || d.turn != turn }

// due reports whether the folder is to be measured.
func (d disk) due(turn uint64) bool {
	wait := time.Until(d.again)
	return wait <= -diskEvery || wait <= 0 && d.begins(turn)
}

// unseen notes that the folder could not be measured, which took so long.
func (d *disk) unseen(took time.Duration) {
	d.again, d.took = time.Now().Add(min(diskShare*took, diskMost)), took
}

// measured notes what the folder holds, which took so long, and reports whether that is more than
// it may, and more than it was since something goes on: what makes room goes on, and so does what
// finds a folder that is full already, since whoever has filled it may be over.
func (d *disk) measured(bytes, most int64, turn uint64, took time.Duration) (grows bool) {
	begins, before, pause := d.begins(turn), d.bytes, min(diskShare*took, diskMost)
	if begins && bytes > most {
		pause = 0 // what goes on is to be told from what was, also where it is short
	}
	*d = disk{bytes: bytes, turn: turn, looks: d.looks + 1, again: time.Now().Add(pause), told: d.told, took: took}
	if grows = !begins && bytes > most && bytes > before; grows {
		d.told = bytes
	}
	return grows
}

// dear reports whether a cell that has ended is not to wait for a measurement.
func (d *disk) dear() bool { return d.took > diskShort && time.Now().Before(d.again) }

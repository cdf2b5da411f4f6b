package forkserver

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// However many sessions die during one look at the machine, they share the next.
func TestSessionsThatDieTogetherShareALook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var looks []int
		b := batches{do: func(pids map[int]bool) {
			time.Sleep(time.Second)
			looks = append(looks, len(pids))
		}}
		begin := time.Now()
		all := []<-chan struct{}{b.add(1)}
		synctest.Wait()
		for pid := range 999 {
			all = append(all, b.add(2+pid))
		}
		for n, done := range all {
			<-done
			require.Equal(t, time.Duration(min(n, 1)+1)*time.Second, time.Since(begin))
		}
		synctest.Wait()
		require.Equal(t, []int{1, 999}, looks)
		<-b.add(7) // it begins again
		require.Equal(t, 3*time.Second, time.Since(begin))
	})
}

// Loader: batches of one rank in the job's order, prefetched; and the position that a checkpoint keeps.
//
// Joins the job (which observations) and the batches that are read ahead of it (core/engine/prefetch.h). The position
// tells what was delivered: batches that are ready but were not asked for are dropped freely by anything that moves it.
// One thread at a time.
#pragma once

#include "core/engine/prefetch.h"
#include "core/job/job.h"

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <vector>

namespace penstock {

class Loader {
 public:
  /// Throws InvalidArgument (see Cursor).
  explicit Loader(LoaderOptions options);
  /// Joins the threads; in a forked child, which has none of them, does nothing.
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// Plans ahead and, if the next batch is ready, returns it and moves the position. Never waits. Returns null while it
  /// is being read (then wait()) and at the end (then ended() is true). Throws the error of a background read, once; a
  /// later call reads that batch again. Throws InvalidArgument if there is no memory for the next batch, or the caller
  /// holds so many that none is left; after close(), and in a forked child; std::bad_alloc if there is none even for
  /// that. Batches before one that fails are delivered first; but where a file changed, none that was read ahead is:
  /// the next call throws ChangedFile.
  std::shared_ptr<Batch> poll();
  /// Waits until poll() can go on, or until `patience` is over.
  void wait(std::chrono::nanoseconds patience);

  /// A `for` begins: fixes where it ends (the epoch's end if per_epoch, else the run's).
  void begin();
  /// Whether poll() returned null because this `for` is over.
  [[nodiscard]] bool ended() const noexcept { return ended_; }

  [[nodiscard]] State state() const { return job_->state(position_); }
  /// Takes the saved position; see Job::load.
  Resume load(const State& state, OnMismatch on_mismatch);
  /// Takes what job().load() gave.
  Resume resume(Resume resume);
  void seek(std::uint64_t position);
  /// Global batches from the next undelivered one on have `size` observations.
  void set_global_batch_size(std::uint64_t size);
  /// Weights from `position` on, which is not before position(), or from where the order lets them begin; of batches
  /// that were given out, or end by then, nothing changes, later ones that were read ahead are read again. Returns
  /// where they begin; at the run's end, where no batch is left, nothing changes. Throws as Job::with_weights.
  std::uint64_t set_weights(std::uint64_t position, std::vector<std::uint64_t> weights);
  /// Stops the threads; poll() throws from now on.
  void close();

  /// Rows of the last batch of the run (or of the present epoch) that are observations; none where there is no batch.
  /// Throws InvalidArgument where Cursor::length does.
  [[nodiscard]] std::optional<std::uint64_t> tail_rows() const;
  /// Rows of batches at the position, padding included.
  [[nodiscard]] std::uint64_t batch_rows() const;
  /// The rank and row of each observation of the global batch of `job` that begins at `position`; none where there is
  /// no batch. `job` is job(), or was before another batch size was set. Throws what reading costs throws, and
  /// InvalidArgument where that would be in a forked child. Any thread.
  [[nodiscard]] std::vector<RowChoice::Place> row_places(const Job& job, std::uint64_t position) const;
  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
  [[nodiscard]] const Job& job() const noexcept { return *job_; }
  [[nodiscard]] const std::shared_ptr<const Job>& shared_job() const noexcept { return job_; }
  [[nodiscard]] BatchPool::Usage usage() const { return prefetch_->usage(); }
  /// Since it was made. Any thread; not in a forked child, where it throws InvalidArgument.
  [[nodiscard]] Metrics metrics() const;
  [[nodiscard]] std::uint64_t limit_bytes() const noexcept { return prefetch_->limit_bytes(); }
  /// Who finishes batches; null: nobody.
  [[nodiscard]] const std::shared_ptr<HandOver>& hand_over() const noexcept { return prefetch_->options().hand_over; }
  [[nodiscard]] unsigned threads() const noexcept { return prefetch_->options().threads; }

 private:
  [[nodiscard]] bool is_forked() const noexcept;
  void check_owner() const;
  void check_process() const;
  [[noreturn]] static void rethrow(Batch& failed);
  std::shared_ptr<Batch> deliver();
  void restart();
  void move_to(std::uint64_t position);

  std::shared_ptr<const Job> job_;  // another one after set_global_batch_size() and set_weights()
  const Share share_;
  std::unique_ptr<Prefetch> prefetch_;
  std::exception_ptr late_error_;  // of who lends memory, for a batch to come; the next poll() throws it
  std::uint64_t position_ = 0;     // of the next batch to deliver
  std::uint64_t for_end_ = 0;      // where the present `for` ends
  bool ended_ = false;
  bool stalled_ = false;  // the caller waited for the next batch
  bool closed_ = false;
  const pid_t owner_;
  const std::uint64_t forks_;
};

}  // namespace penstock

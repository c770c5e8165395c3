// The quota of control groups, read from real files in a folder that stands for "/".
#include "core/base/cores.h"

#include "tests/native/temporary_folder.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cmath>
#include <fstream>

namespace penstock::testing {
namespace {

class Cores : public ::testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  void mount_v2(const std::string& group, const std::string& top = "/") const {
    write("/proc/self/cgroup", "0::" + group + "\n");
    write("/proc/self/mountinfo", "22 1 0:21 / /proc rw - proc proc rw\n30 22 0:26 " + top +
                                      " /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
  }
  void mount_v1(const std::string& group, const std::string& top = "/") const {
    write("/proc/self/cgroup", "4:memory:/elsewhere\n3:cpuset:/fast\n2:cpu,cpuacct:" + group + "\n0::/\n");
    write("/proc/self/mountinfo",
          "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
          "32 31 0:29 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
          "33 31 0:30 " +
              top + " /sys/fs/cgroup/cpu,cpuacct rw shared:12 master:3 - cgroup cgroup rw,cpu,cpuacct\n");
  }
  [[nodiscard]] double quota_v1(const std::string& group, const std::string& most, const std::string& period) const {
    write("/sys/fs/cgroup/cpu,cpuacct" + group + "/cpu.cfs_quota_us", most + "\n");
    write("/sys/fs/cgroup/cpu,cpuacct" + group + "/cpu.cfs_period_us", period + "\n");
    return quota();
  }
  [[nodiscard]] double quota_v2(const std::string& group, const std::string& max) const {
    write("/sys/fs/cgroup" + group + "/cpu.max", max);
    return quota();
  }
  [[nodiscard]] double quota() const { return cpu_quota(root_); }

  const TemporaryFolder folder_;
  const std::string root_ = folder_.path();
};

TEST_F(Cores, VersionTwoTakesTheLowestOfTheGroupAndOfThoseAboveIt) {
  EXPECT_TRUE(std::isinf(quota())) << "no control groups";
  mount_v2("/pods/one/main");
  EXPECT_TRUE(std::isinf(quota()));
  EXPECT_TRUE(std::isinf(quota_v2("/pods/one/main", "max 100000\n")));
  EXPECT_EQ(quota_v2("/pods/one/main", "800000 100000\n"), 8);
  EXPECT_EQ(quota_v2("/pods", "125000 50000\n"), 2.5);
  EXPECT_EQ(quota_v2("/pods/other", "10000 100000\n"), 2.5) << "not above";
  EXPECT_EQ(quota_v2("", "100000 100000\n"), 1) << "a container's own group, seen as the top";
}

TEST_F(Cores, VersionOneTakesTheGroupOfTheCpuControllerAndAContainerSeesItsGroupAsTheMountsTop) {
  mount_v1("/pods/one");
  write("/sys/fs/cgroup/cpuset/fast/cpu.cfs_quota_us", "1000\n");
  EXPECT_TRUE(std::isinf(quota_v1("/pods/one", "-1", "100000")));
  EXPECT_EQ(quota_v1("/pods/one", "350000", "100000"), 3.5);
  EXPECT_EQ(quota_v1("/pods", "100000", "50000"), 2);
  mount_v1("/docker/abc", "/docker/abc");
  EXPECT_EQ(quota_v1("", "300000", "100000"), 3);
  mount_v1("/docker/abc/inner", "/docker/abc");
  EXPECT_EQ(quota_v1("/inner", "200000", "100000"), 2);
  mount_v1("/docker/abcd/inner", "/docker/abc");  // not below the top: what is mounted alone
  EXPECT_EQ(quota(), 3);
  mount_v2("/docker/abc", "/docker/abc");
  EXPECT_EQ(quota_v2("", "50000 100000\n"), 0.5);
}

TEST_F(Cores, WhatCannotBeUnderstoodIsNoQuota) {
  mount_v2("/group");
  for (const char* const text : {"", "many", "100000", "0 100000", "100000 0", "-1 100000"}) {
    EXPECT_TRUE(std::isinf(quota_v2("/group", text))) << text;
  }
  EXPECT_EQ(quota_v2("/group", "100000 100000"), 1);
  for (const char* const text : {"", "\n", "0::", "0:", "0::group"}) {
    write("/proc/self/cgroup", text);
    EXPECT_TRUE(std::isinf(quota())) << text;
  }
  write("/proc/self/cgroup", "0::/group");
  EXPECT_EQ(quota(), 1);
  for (const char* const text : {"", "30 22 0:26 / /sys/fs/cgroup rw - cgroup2\n", "- cgroup2 cgroup2 rw\n"}) {
    write("/proc/self/mountinfo", text);
    EXPECT_TRUE(std::isinf(quota())) << text;
  }
}

TEST_F(Cores, CoresAreSharedAndRoundedDownAndNeverNone) {
  const auto expect = [&](std::uint64_t processes, unsigned there, unsigned cores) {
    EXPECT_EQ(usable_cores(processes, there, root_), cores) << processes << " " << there;
  };
  expect(1, 64, 64);
  expect(8, 64, 8);
  expect(7, 64, 9);
  expect(65, 64, 1);
  expect(std::uint64_t{1} << 40U, 64, 1);
  expect(0, 0, 1);
  mount_v2("/group");
  EXPECT_EQ(quota_v2("/group", "750000 100000\n"), 7.5);
  expect(1, 64, 7);
  expect(2, 64, 3);  // 3.75: divided before it is rounded
  expect(3, 64, 2);
  expect(1, 4, 4);
  EXPECT_EQ(quota_v2("/group", "50000 100000\n"), 0.5);
  expect(1, 64, 1);
}

TEST(CoresOfThisProcess, AffinityBoundsThem) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_GE(usable_cores(), 1U);
  EXPECT_LE(usable_cores(), static_cast<unsigned>(CPU_COUNT(&before)));
  cpu_set_t one;
  CPU_ZERO(&one);
  for (std::size_t core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core) {
    if (CPU_ISSET(core, &before)) CPU_SET(core, &one);
  }
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(usable_cores(), 1U);
  EXPECT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
}

}  // namespace
}  // namespace penstock::testing

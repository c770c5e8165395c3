// The quota of control groups, read from real files in a folder that stands for "/".
#include "core/base/cores.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace penstock {
namespace {

class Cores : public testing::Test {
 protected:
  Cores() {
    root_ = (std::filesystem::temp_directory_path() / "penstock-XXXXXX").string();
    if (::mkdtemp(root_.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
  }
  ~Cores() override { std::filesystem::remove_all(root_); }

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
  void limit_v1(const std::string& group, const std::string& quota, const std::string& period) const {
    write("/sys/fs/cgroup/cpu,cpuacct" + group + "/cpu.cfs_quota_us", quota + "\n");
    write("/sys/fs/cgroup/cpu,cpuacct" + group + "/cpu.cfs_period_us", period + "\n");
  }
  [[nodiscard]] double quota() const { return cpu_quota(root_); }

  std::string root_;
};

TEST_F(Cores, WithoutControlGroupsThereIsNoQuota) {
  EXPECT_TRUE(std::isinf(quota()));
  mount_v2("/");
  EXPECT_TRUE(std::isinf(quota()));
}

TEST_F(Cores, VersionTwoTakesTheLowestOfTheGroupAndOfThoseAboveIt) {
  mount_v2("/pods/one/main");
  write("/sys/fs/cgroup/pods/one/main/cpu.max", "max 100000\n");
  EXPECT_TRUE(std::isinf(quota()));
  write("/sys/fs/cgroup/pods/one/main/cpu.max", "800000 100000\n");
  EXPECT_EQ(quota(), 8);
  write("/sys/fs/cgroup/pods/cpu.max", "125000 50000\n");
  EXPECT_EQ(quota(), 2.5);
  write("/sys/fs/cgroup/pods/other/cpu.max", "10000 100000\n");  // not above
  EXPECT_EQ(quota(), 2.5);
  write("/sys/fs/cgroup/cpu.max", "100000 100000\n");  // a container's own group, seen as the top
  EXPECT_EQ(quota(), 1);
}

TEST_F(Cores, VersionOneTakesTheGroupOfTheCpuController) {
  mount_v1("/pods/one");
  limit_v1("/pods/one", "-1", "100000");
  write("/sys/fs/cgroup/cpuset/fast/cpu.cfs_quota_us", "1000\n");
  EXPECT_TRUE(std::isinf(quota()));
  limit_v1("/pods/one", "350000", "100000");
  EXPECT_EQ(quota(), 3.5);
  limit_v1("/pods", "100000", "50000");
  EXPECT_EQ(quota(), 2);
}

TEST_F(Cores, AContainerSeesItsGroupAsTheMountsTop) {
  mount_v1("/docker/abc", "/docker/abc");
  limit_v1("", "300000", "100000");
  EXPECT_EQ(quota(), 3);
  mount_v1("/docker/abc/inner", "/docker/abc");
  limit_v1("/inner", "200000", "100000");
  EXPECT_EQ(quota(), 2);
  mount_v1("/docker/abcd/inner", "/docker/abc");  // not below the top: what is mounted alone
  EXPECT_EQ(quota(), 3);
  mount_v2("/docker/abc", "/docker/abc");
  write("/sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_EQ(quota(), 0.5);
}

TEST_F(Cores, WhatCannotBeUnderstoodIsNoQuota) {
  mount_v2("/group");
  for (const char* const text : {"", "many", "100000", "0 100000", "100000 0", "-1 100000"}) {
    write("/sys/fs/cgroup/group/cpu.max", text);
    EXPECT_TRUE(std::isinf(quota())) << text;
  }
  write("/sys/fs/cgroup/group/cpu.max", "100000 100000");
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
  EXPECT_EQ(usable_cores(1, 64, root_), 64U);
  EXPECT_EQ(usable_cores(8, 64, root_), 8U);
  EXPECT_EQ(usable_cores(7, 64, root_), 9U);
  EXPECT_EQ(usable_cores(65, 64, root_), 1U);
  EXPECT_EQ(usable_cores(std::uint64_t{1} << 40U, 64, root_), 1U);
  EXPECT_EQ(usable_cores(0, 0, root_), 1U);
  mount_v2("/group");
  write("/sys/fs/cgroup/group/cpu.max", "750000 100000\n");
  EXPECT_EQ(usable_cores(1, 64, root_), 7U);
  EXPECT_EQ(usable_cores(2, 64, root_), 3U);  // 3.75: divided before it is rounded
  EXPECT_EQ(usable_cores(3, 64, root_), 2U);
  EXPECT_EQ(usable_cores(1, 4, root_), 4U);
  write("/sys/fs/cgroup/group/cpu.max", "50000 100000\n");
  EXPECT_EQ(usable_cores(1, 64, root_), 1U);
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
}  // namespace penstock

from situs.executors import Executor
from situs.executors.openvino_hetero import HeteroExecutor
from situs.executors.openvino_parallel import ParallelExecutor
from situs.hardware import Cluster
from situs.testing.executor_suite import ExecutorSuite


class TestHetero(ExecutorSuite):
    def executor(self, cluster: Cluster) -> Executor:
        return HeteroExecutor(cluster)


class TestParallel(ExecutorSuite):
    def executor(self, cluster: Cluster) -> Executor:
        return ParallelExecutor(cluster)
